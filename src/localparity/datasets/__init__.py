"""Data sets to audit, train and test on."""

from localparity.datasets._images import load_celeba, load_utkface
from localparity.datasets._paper import Split, paper_preprocessor, paper_split
from localparity.datasets._synthetic import census_cdf, census_mcdp, make_census
from localparity.datasets._tabular import fetch_adult, fetch_bank

__all__ = [
    "Split",
    "census_cdf",
    "census_mcdp",
    "fetch_adult",
    "fetch_bank",
    "load_celeba",
    "load_utkface",
    "make_census",
    "paper_preprocessor",
    "paper_split",
]
