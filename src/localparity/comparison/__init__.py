"""Which method when: models trained and repaired under one protocol, side by side."""

from localparity.comparison._compare import compare
from localparity.comparison._comparison import Comparison, Outcome

__all__ = ["Comparison", "Outcome", "compare"]
