"""Local disparity over time: sketches of a stream, a monitor of periods, and a streaming metric."""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
