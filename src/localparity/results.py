"""What calls return: types that nobody constructs, documented in one place."""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
