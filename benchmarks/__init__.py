"""Measurements, and the simulations behind stated results; what tests share lies in tests/support."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
