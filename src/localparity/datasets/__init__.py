"""Data sets to audit, train and test on."""

from localparity.datasets._synthetic import census_cdf, census_mcdp, make_census

__all__ = ["census_cdf", "census_mcdp", "make_census"]
