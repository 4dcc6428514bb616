"""How sure a measured disparity is: intervals, a test against parity, and what is expected under parity."""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
