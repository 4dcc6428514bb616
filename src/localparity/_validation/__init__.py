"""The one place where arrays and numbers are checked and normalised.

Every function takes the value and returns it in the one form that the rest of the package works on, or
raises an `InputError` that names the argument, what was expected and what came.
"""

from localparity._lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
