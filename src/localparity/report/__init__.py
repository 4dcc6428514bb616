"""Figures on matplotlib axes, which need the extra `report`, and a page that people can read."""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
