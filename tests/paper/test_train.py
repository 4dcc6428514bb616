"""A run gives what the estimator gives."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiment_runs import SHORT, load_census
from localparity.datasets import fetch_adult
from localparity.metrics import mcdp
from localparity.models import LocalParityClassifier
from localparity.paper import Run
from localparity.paper._data import paper_split
from localparity.paper._train import train_run


@pytest.mark.parametrize("method", ["erm", "advdebias", "fairmixup", "diffmcdp"])
def test_a_run_is_the_estimators_fit_to_the_bit(small: None, method: str) -> None:
    strength = 0.0 if method == "erm" else 0.3
    run = Run("adult", method, 0.2 if method == "advdebias" else strength, 3)
    record, test = train_run(run, "cpu")
    samples = load_census()
    split = paper_split(samples.labels, 3)
    model = LocalParityClassifier(method, run.strength, preset="paper", device="cpu", random_state=3, **SHORT)
    model.fit(
        samples.features.iloc[split.train],
        samples.labels[split.train],
        sensitive_features=samples.groups[split.train],
    )
    scores = model.predict_proba(samples.features.iloc[split.test])[:, 1].astype(np.float32)
    np.testing.assert_array_equal(test.score, scores)
    np.testing.assert_array_equal(test.label, samples.labels[split.test])
    np.testing.assert_array_equal(test.group, samples.groups[split.test])
    assert record.metrics["test_mcdp_0"] == mcdp(None, scores, sensitive_features=samples.groups[split.test])


def test_the_number_of_threads_does_not_change_the_bits_and_stays_as_it_was(small: None) -> None:
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(train_run(Run("adult", "erm", 0.0, 0), "cpu")[1].score)
            assert torch.get_num_threads() == count
        np.testing.assert_array_equal(*found)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.slow
def test_a_run_on_adult_is_the_estimators_fit_to_the_bit(data_folder: object) -> None:
    record, test = train_run(Run("adult", "diffmcdp", 0.3, 0), "cpu")
    bunch = fetch_adult()
    split = paper_split(bunch.target, 0)
    model = LocalParityClassifier(
        "diffmcdp", 0.3, preset="paper", search="frozen", device="cpu", random_state=0
    )
    model.fit(
        bunch.data.iloc[split.train],
        bunch.target[split.train],
        sensitive_features=bunch.sensitive_features[split.train],
    )
    scores = model.predict_proba(bunch.data.iloc[split.test])[:, 1]
    np.testing.assert_array_equal(test.score, scores.astype(np.float32))
    assert record.metrics["test_mcdp_0"] < 0.15
