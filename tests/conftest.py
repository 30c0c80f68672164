"""Set-up that every test shares: no model hub, one torch thread, no wall-clock limits."""

import os

# Read by these libraries when they are imported, hence before the imports below.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
from hypothesis import settings

settings.register_profile("nnsight-lab", deadline=None, print_blob=True)
settings.load_profile("nnsight-lab")


@pytest.fixture(scope="session")
def smollm2():
    """SmolLM2-135M-Instruct and its tokenizer, as transformers gives them; shared, so leave it as you found it."""
    from nnsight_lab.demo.smollm2 import plain_smollm2

    return plain_smollm2()
