"""Figures on matplotlib axes, and a page that people can read; needs the extra `report`."""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
