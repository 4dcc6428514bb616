"""Optional components: a missing one is an error that says which extra to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def require(module: str, *, extra: str) -> Any:
    """Import `module`, or say which extra of localparity brings it.

    Parameters
    ----------
    module : str
        The module's name, as in an import statement.
    extra : str
        The extra that installs it.

    Returns
    -------
    module
        The imported module.

    Examples
    --------
    >>> require("math", extra="data").sqrt(4.0)
    2.0
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{module} is needed here and cannot be imported ({error}); "
            f"install it with: pip install 'localparity[{extra}]'"
        ) from error
