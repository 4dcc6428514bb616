"""The paper's algorithms as they are written to compare with, and the study of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from localparity.paper import Store
from localparity.paper._algorithm_study import EPSILONS, KS, study_algorithms
from localparity.paper._paper_algorithms import algorithm_1, algorithm_1_lean, algorithm_2
from localparity.paper._result import Result

# In sixty-fourths, so that every sum and product is exact in binary.
PLACES = st.lists(st.integers(0, 64), min_size=1, max_size=9)


@given(PLACES, PLACES, st.integers(1, 30), st.sampled_from([1, 2, 1024]))
def test_algorithm_1_is_the_definition(first: list[int], second: list[int], half: int, at_once: int) -> None:
    scores = np.array([*first, *second]) / 64.0
    groups = np.repeat([0, 1], [len(first), len(second)])
    a, b = ([(Fraction(place, 64), Fraction(1)) for place in places] for places in (first, second))
    truth = float(oracles.mcdp(a, b, Fraction(half, 64)))
    assert algorithm_1(scores, groups, half / 64.0, windows_at_once=at_once) == pytest.approx(
        truth, abs=1e-12
    )
    assert algorithm_1_lean(scores, groups, half / 64.0) == pytest.approx(truth, abs=1e-12)
    assert algorithm_2(scores, groups, half / 64.0, 2) >= truth - 1e-12


def test_the_study_of_a_store(copy_of_store: Store) -> None:
    studies = study_algorithms(copy_of_store)
    assert [each.dataset for each in studies] == ["adult", "bank"]
    for study in studies:
        assert (study.rows, study.runs) == (450, 46)
        assert [(each.epsilon, each.k) for each in study.approximations] == [
            (epsilon, k) for epsilon in EPSILONS for k in KS
        ]
        assert min(study.algorithm_1, study.algorithm_1_lean, study.profile) > 0.0
        for epsilon in EPSILONS:
            errors = [each.error for each in study.approximations if each.epsilon == epsilon]
            assert errors == sorted(errors, reverse=True)
            assert errors[-1] >= 0.0
        for each in study.approximations:
            assert 0.0 <= each.error_low <= each.error_high
    path = copy_of_store.folder / "algorithms.json"
    kept = path.read_bytes()
    assert study_algorithms(copy_of_store) == studies
    assert path.read_bytes() == kept
    record = next(record for record in copy_of_store.records() if record.run.seed == 0)
    metrics = record.metrics | {"test_ap": 0.5}
    copy_of_store.add(record.run, Result(metrics, copy_of_store.scores(record.run), 1.0, "cpu", {}))
    again = study_algorithms(copy_of_store)
    assert [new.of == old.of for new, old in zip(again, studies, strict=True)] == [False, True]
    path.write_text("{")
    assert [each.dataset for each in study_algorithms(copy_of_store)] == ["adult", "bank"]
