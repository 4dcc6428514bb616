"""Real mortgages of which many borrowers' groups are blank: HMDA 2018."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import localparity as lp

FEATURES = [
    "loan_amount",
    "loan_to_value_ratio",
    "no_intro_rate_period",
    "property_value",
    "income",
    "term_360",
    "conforming",
]


@pytest.fixture(scope="module")
def mortgages(data_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every other mortgage, with the chance of a high price by a model of the rest, race and sex as texts."""
    people = pd.read_csv(data_folder / "hmda" / "hmda_2018_sample.csv.gz")
    model = make_pipeline(StandardScaler(), LogisticRegression())
    model.fit(people[FEATURES][::2], people.high_priced[::2])
    held_out = people[1::2]
    scored: dict[str, Any] = {"p": model.predict_proba(held_out[FEATURES])[:, 1].round(4)}
    races = [held_out.black == 1, held_out.white == 1, held_out.black == 0]
    scored["race"] = np.select(races, ["black", "white", "other"], default="")
    scored["sex"] = np.select([held_out.male == 1, held_out.female == 1], ["male", "female"], default="")
    path = tmp_path_factory.mktemp("hmda") / "mortgages.csv"
    pd.DataFrame(scored).to_csv(path, index=False)
    return path


def read(path: Path, **options: Any) -> lp.Audit:
    return lp.Audit.read(path, **{"score": "p", "n_resamples": 0, "epsilons": [0, 0.05]} | options)


def test_blank_sexes_are_counted_and_bounded(mortgages: Path) -> None:
    with pytest.raises(ValueError, match=r"column 'sex' has no value in 9,093 of 19,831 rows"):
        read(mortgages, group="sex")
    found = read(mortgages, group="sex", missing_groups="bound")
    assert (found.missing_rows.groups, found.unknown_groups.known) == (9093, 10738)
    at_zero, wide = found.unknown_groups.bounds
    assert at_zero.low_exact
    assert at_zero.high_exact
    assert at_zero.low < found.findings[0].mcdp < at_zero.high
    assert wide.high < at_zero.high
    assert (round(at_zero.estimate, 3), round(at_zero.high, 3)) == (0.025, 0.485)
    breaks = found.unknown_groups.breakdown(0.1)
    assert (breaks.passes, breaks.added, breaks.wrong) == (True, 440, 227)


def test_a_disparity_by_race_does_not_hang_on_a_few_blanks(mortgages: Path) -> None:
    found = read(mortgages, group="race", missing_groups="bound", missing_values=["other"])
    assert found.findings[0].mcdp > 0.25
    breaks = found.unknown_groups.breakdown(0.1)
    assert (breaks.passes, breaks.added, breaks.exact, breaks.wrong) == (False, 544, False, 471)
