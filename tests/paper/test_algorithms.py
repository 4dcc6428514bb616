"""The paper's algorithms as they are written to compare with, and the study of them."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from benchmarks import algorithms
from benchmarks._paper_algorithms import algorithm_1, algorithm_1_lean, algorithm_2
from benchmarks.algorithms import EPSILONS, KS, draw_errors, draw_speed_ups, study_store, time_table
from hypothesis import given
from hypothesis import strategies as st

import oracles
from localparity.paper import Store
from localparity.paper._figures import panels, toy_scores

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


@pytest.mark.slow
def test_the_study_of_a_store_its_table_and_its_figure(small_store: Store, tmp_path: Path) -> None:
    studies = study_store(small_store)
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
    assert "| Adult | 450 | 3.529 ± 0.122 |" in time_table(studies).to_markdown()
    names = [path.name for path in algorithms.write(studies, tmp_path)]
    assert names == [
        *(f"algorithm-times.{kind}" for kind in ("md", "csv")),
        *(f"figure-5.{kind}" for kind in ("png", "svg", "pdf")),
    ]


def test_lines_for_every_epsilon_and_the_profile() -> None:
    found = algorithms.study("adult", [toy_scores(50)])
    _, ((above,), (below,)) = panels(1, 2)
    draw_errors(above, found)
    draw_speed_ups(below, found)
    for ax in (above, below):
        assert len(ax.get_legend_handles_labels()[1]) == 4
