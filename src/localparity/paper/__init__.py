"""The reproduction of the paper: its runs, and the store that tables and figures are made from."""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
