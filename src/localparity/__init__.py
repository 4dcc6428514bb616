"""Where two groups of people are treated most differently by a model's scores, and how sure that is."""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
