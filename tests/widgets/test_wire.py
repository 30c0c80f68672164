"""The contract between kernel and page is one: what TypeScript is generated from is what Python says."""

from pathlib import Path

from nnsight_lab.widgets import wire

ROOT = Path(__file__).parents[2]


def test_the_schema_that_the_page_is_built_from_is_the_contract() -> None:
    committed = (ROOT / "src/common/wire.schema.json").read_text(encoding="utf-8")
    assert committed == wire.schema_text(), (
        "run: python -m nnsight_lab.widgets.wire > src/common/wire.schema.json && npm run wire"
    )
