"""For each group and label the distinct scores and the weight at each: all that the metrics need."""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
