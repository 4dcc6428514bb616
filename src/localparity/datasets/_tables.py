"""Adult and Bank, as the paper reads them."""

from __future__ import annotations

import csv
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localparity._validation import require
from localparity.datasets._fetch import RemoteFile, read_bytes

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_ADULT_FILES = tuple(
    RemoteFile(f"adult/{name}", f"{_UCI}/adult/{name}", sha256)
    for name, sha256 in {
        "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    }.items()
)
_BANK_FILE = RemoteFile(
    "bank/bank-additional-full.csv",
    f"{_UCI}/00222/bank-additional.zip",
    "74adfc578bf77a7ff4bb1ba4a9f8709d9e3c6907342959c2c8416847e0afb4d8",
    member="bank-additional/bank-additional-full.csv",
)
_ADULT_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]
_ADULT_NUMBERS = {"age", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
_BANK_NUMBERS = {
    "duration",
    "campaign",
    "pdays",
    "previous",
    "emp.var.rate",
    "cons.price.idx",
    "cons.conf.idx",
    "euribor3m",
    "nr.employed",
}


def fetch_adult(
    *, cache: bool = True, data_home: str | PathLike[str] | None = None, as_frame: bool = True
) -> Any:
    """Load the Adult census of 1994: income above 50,000 dollars, with sex as the sensitive feature.

    Both original parts together, without the 3,620 rows that have a missing value and without `fnlwgt`:
    45,222 rows. It is read from the folder that LOCALPARITY_DATA names, else from the cache, else downloaded
    from the UCI Machine Learning Repository (CC BY 4.0); its sha256 is checked each time.

    Parameters
    ----------
    cache : bool
        Whether a download is kept for the next time.
    data_home : path, optional
        The cache folder; the user's own by default.
    as_frame : bool
        Whether `data` is a pandas data frame with categorical text columns, or a dictionary of columns.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (12 columns; sex is not one of them), `target` (1 for an income above 50,000 dollars),
        `sensitive_features` (Female or Male), `feature_names`.

    Examples
    --------
    >>> import localparity as lp
    >>> adult = lp.datasets.fetch_adult()  # doctest: +SKIP
    >>> adult.data.shape  # doctest: +SKIP
    (45222, 12)
    """
    rows: list[list[str]] = []
    for file in _ADULT_FILES:
        text = read_bytes(file, cache=cache, data_home=data_home).decode("ascii")
        lines = csv.reader(text.splitlines(), skipinitialspace=True)
        rows.extend(row for row in lines if len(row) == len(_ADULT_COLUMNS) and "?" not in row)
    columns = dict(zip(_ADULT_COLUMNS, map(np.asarray, zip(*rows, strict=True)), strict=True))
    target = np.char.startswith(columns.pop("income"), ">50K").astype(np.int64)
    sex = columns.pop("sex")
    del columns["fnlwgt"]
    return _bunch(columns, _ADULT_NUMBERS, target, sex, as_frame=as_frame)


def fetch_bank(
    *, cache: bool = True, data_home: str | PathLike[str] | None = None, as_frame: bool = True
) -> Any:
    """Load a Portuguese bank's marketing calls: subscriptions, with age as the sensitive feature.

    The 41,188 rows of `bank-additional-full.csv`. The groups are the clients of 25 and over and the 1,068
    under 25. It is read from the folder that LOCALPARITY_DATA names, else from the cache, else downloaded
    from the UCI Machine Learning Repository (CC BY 4.0); its sha256 is checked each time.

    Parameters
    ----------
    cache : bool
        Whether a download is kept for the next time.
    data_home : path, optional
        The cache folder; the user's own by default.
    as_frame : bool
        Whether `data` is a pandas data frame with categorical text columns, or a dictionary of columns.

    Returns
    -------
    sklearn.utils.Bunch
        `data` (19 columns; age is not one of them), `target` (1 for a subscription), `sensitive_features`
        ("25 and over" or "under 25"), `feature_names`.

    Examples
    --------
    >>> import localparity as lp
    >>> bank = lp.datasets.fetch_bank()  # doctest: +SKIP
    >>> bank.data.shape  # doctest: +SKIP
    (41188, 19)
    """
    text = read_bytes(_BANK_FILE, cache=cache, data_home=data_home).decode("ascii")
    header, *rows = csv.reader(text.splitlines(), delimiter=";")
    columns = dict(zip(header, map(np.asarray, zip(*rows, strict=True)), strict=True))
    target = (columns.pop("y") == "yes").astype(np.int64)
    grown = columns.pop("age").astype(np.int64) >= 25
    ages = np.where(grown, "25 and over", "under 25")
    return _bunch(columns, _BANK_NUMBERS, target, ages, as_frame=as_frame)


def _bunch(
    texts: dict[str, NDArray[Any]],
    numbers: set[str],
    target: NDArray[np.int64],
    groups: NDArray[Any],
    *,
    as_frame: bool,
) -> Any:
    from sklearn.utils import Bunch

    data: Any = {
        name: values.astype(np.float64) if name in numbers else values for name, values in texts.items()
    }
    names = list(data)
    if as_frame:
        # Categories know all values of a column, also in a part that lacks some of them.
        categories = {name: "category" for name in names if name not in numbers}
        data = require("pandas", extra="data").DataFrame(data).astype(categories)
    return Bunch(data=data, target=target, sensitive_features=groups, feature_names=names)
