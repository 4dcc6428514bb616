"""The members of a public class that the package itself defines, whatever its bases bring along."""

from __future__ import annotations

import re
from importlib import import_module


def own_members(fullname: str) -> dict[str, list[str]]:
    """The public methods and properties of a class, by kind."""
    module, _, name = fullname.rpartition(".")
    cls = getattr(import_module(module), name)
    found: dict[str, list[str]] = {"methods": [], "attributes": []}
    for member in dir(cls):
        owner = next((base for base in cls.__mro__ if member in vars(base)), object)
        value = vars(owner).get(member)
        # scikit-learn adds `set_fit_request` and the like, which its own pages describe.
        if (
            re.fullmatch(r"_.*|set_\w+_request", member)
            or not owner.__module__.startswith("localparity.")
            or not value.__doc__
        ):
            continue
        if callable(getattr(cls, member)):
            found["methods"].append(member)
        elif isinstance(value, property) or hasattr(value, "func"):
            found["attributes"].append(member)
    return found
