"""Data sets to audit, train and test on."""

from localparity.datasets._census import census_mcdp, make_census
from localparity.datasets._tables import fetch_adult, fetch_bank

__all__ = [
    "census_mcdp",
    "fetch_adult",
    "fetch_bank",
    "make_census",
]
