"""Data sets to audit, train and test on."""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
