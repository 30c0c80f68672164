"""`python -m nnsight_lab.cli`, the same as `nnsight-lab`."""

import sys

from .main import main

sys.exit(main())
