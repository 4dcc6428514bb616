"""The methods' titles, in the order of the paper's tables."""

from __future__ import annotations

TITLES: dict[str, str] = {
    "erm": "ERM",
    "advdebias": "AdvDebias",
    "diffdp": "DiffDP",
    "fairmixup": "FairMixup",
    "dralign": "DRAlign",
    "diffabcc": "DiffABCC",
    "diffmcdp": "DiffMCDP",
}


def variant_title(method: str, search: str | None = None, temperature: float | None = None) -> str:
    """A method's title and what was changed of it.

    Examples
    --------
    >>> variant_title("diffmcdp", "soft", 20.0)
    'DiffMCDP (soft, temperature 20)'
    """
    changes = [] if search is None else [search]
    if temperature is not None:
        changes.append(f"temperature {temperature:g}")
    return TITLES[method] + (f" ({', '.join(changes)})" if changes else "")
