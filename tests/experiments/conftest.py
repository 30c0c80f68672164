import pytest

from nnsight_lab import demo


@pytest.fixture(scope="session")
def atlas():
    """The embedded model, wrapped; shared, so leave it as you found it."""
    return demo.load()
