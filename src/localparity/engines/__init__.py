"""Engines that count scores where they are: DuckDB, Spark, a warehouse or a GPU."""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
