"""Models whose local disparity is penalised, repaired or kept within a bound.

Networks need the extra `train`, trees the extra `boost`; each is imported on first use.
"""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
