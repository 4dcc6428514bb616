"""An audit of a model's scores: findings, how sure each is, and a verdict in words."""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
