from localparity.datasets._census import census_mcdp as census_mcdp
from localparity.datasets._census import make_census as make_census
from localparity.datasets._tables import fetch_adult as fetch_adult
from localparity.datasets._tables import fetch_bank as fetch_bank
