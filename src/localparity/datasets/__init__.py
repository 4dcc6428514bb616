"""Data sets to audit, train and test on."""

from localparity.datasets._synthetic import census_cdf, census_mcdp, census_probabilities, make_census
from localparity.datasets._tabular import fetch_adult, fetch_bank

__all__ = [
    "census_cdf",
    "census_mcdp",
    "census_probabilities",
    "fetch_adult",
    "fetch_bank",
    "make_census",
]
