"""Models of several classes: an audit of each class's score, and what holds over all of them together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from localparity._types import ArrayLike, Groups
from localparity._validation import InputError, as_frame, as_probability, as_vector, setting
from localparity.auditing._audit import Audit
from localparity.auditing._auditing import audit
from localparity.metrics._window import percent
from localparity.uncertainty._permutation import least_p_value, p_value_text


@dataclass(frozen=True, repr=False)
class ClassAudits:
    """The audits of a model's classes, each class against all others. Make one with `audit_classes`.

    Attributes
    ----------
    audits : mapping
        The audit of each class, at the confidence that makes all of them hold together.
    confidence : float
        The probability with which the intervals of all classes hold together.

    Examples
    --------
    >>> import numpy as np
    >>> import localparity as lp
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 400)
    >>> scores = rng.dirichlet([2, 2, 2], 400)
    >>> scores[sex == "f"] = rng.dirichlet([2, 2, 4], np.count_nonzero(sex == "f"))
    >>> asked = {"sensitive_features": sex, "classes": ["a", "b", "c"], "random_state": 0}
    >>> found = lp.audit_classes(None, scores, **asked)
    >>> found.worst, found.p_value < 0.05
    ('c', True)
    """

    audits: Mapping[Any, Audit]
    confidence: float

    @property
    def worst(self) -> Any:
        """The class with the largest MCDP at the smallest epsilon."""
        return max(self.audits, key=lambda name: self.audits[name].findings[0].mcdp)

    @property
    def p_values(self) -> dict[Any, float]:
        """The p-value of each class at the smallest epsilon, adjusted over all classes by Holm; else nan."""
        tests = {name: found.findings[0].test for name, found in self.audits.items()}
        raw = {name: np.nan if test is None else test.p_value for name, test in tests.items()}
        adjusted, largest = {}, 0.0
        for place, name in enumerate(sorted(raw, key=lambda name: raw[name])):
            largest = max(largest, min(1.0, (len(raw) - place) * raw[name]))
            adjusted[name] = largest if np.isfinite(raw[name]) else np.nan
        return {name: adjusted[name] for name in raw}

    @property
    def p_value(self) -> float:
        """At most how often parity in all classes would measure as much in one; nan without a test."""
        return float(min(self.p_values.values()))

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        finding = self.audits[self.worst].findings[0]
        of = f"Of {len(self.audits)} classes, {self.worst} differs most between groups"
        found = f"{of}: MCDP({finding.epsilon:g}) is {percent(finding.mcdp)}."
        together = f"Intervals hold for all classes together with a confidence of {100 * self.confidence:g}%"
        if np.isnan(self.p_value):
            return f"{found} {together}; no test was made."
        least = len(self.audits) * least_p_value(self.audits[self.worst].n_resamples)
        p_value = p_value_text(self.p_value, min(least, 1.0))
        return f"{found} {together}; the p-value against parity in all of them is {p_value}."

    def __repr__(self) -> str:
        return self.sentence


def class_confidence(confidence: float, classes: int) -> float:
    """The confidence of each class's audit, for all of them to hold together with `confidence`.

    Examples
    --------
    >>> round(class_confidence(0.95, 5), 10)
    0.99
    """
    return 1.0 - (1.0 - as_probability(confidence)) / classes


def audit_classes(
    y_true: ArrayLike | None,
    y_score: ArrayLike | Mapping[Hashable, ArrayLike],
    *,
    sensitive_features: Groups,
    classes: Sequence[Any] | None = None,
    confidence: float = 0.95,
    **options: Any,
) -> ClassAudits:
    """Audit the scores that a model gives several classes, each against all others.

    Parameters
    ----------
    y_true : array-like or None
        The class of each row, where the criterion needs labels: 1 is then "of this class".
    y_score : array-like of shape (n_samples, n_classes), data frame or mapping of columns
        The scores of each class, as of ``predict_proba``.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row.
    classes : sequence, optional
        The classes, in the order of the columns; by default the names of the columns, or 0, 1 and so on.
    confidence : float
        The probability with which the intervals of all classes hold together.
    **options
        Further arguments of `audit`, such as ``epsilons`` or ``n_resamples``.

    Returns
    -------
    ClassAudits
        The audit of each class, and p-values adjusted over the classes.

    Examples
    --------
    >>> import localparity as lp
    >>> scores = {"low": [0.7, 0.6, 0.2, 0.1], "high": [0.3, 0.4, 0.8, 0.9]}
    >>> sex = ["f", "f", "m", "m"]
    >>> found = lp.audit_classes(None, scores, sensitive_features=sex, n_resamples=0)
    >>> {name: each.findings[0].mcdp for name, each in found.audits.items()}
    {'low': 1.0, 'high': 1.0}
    """
    columns = _columns(y_score, classes)
    if len(columns) < 2:
        raise InputError(f"must have two classes or more, got {len(columns)}; use audit", "y_score")
    labels: dict[Any, Any] = dict.fromkeys(columns)
    if y_true is not None:
        given = as_vector(y_true, "y_true")
        unknown = set(given.tolist()) - set(columns)
        if unknown:
            named = ", ".join(map(repr, columns))
            raise InputError(f"must be one of the classes {named}, got {next(iter(unknown))!r}", "y_true")
        labels = {name: np.asarray(given == name, dtype=np.int64) for name in columns}
    each = class_confidence(confidence, len(columns))
    audits = {
        name: audit(labels[name], scores, sensitive_features=sensitive_features, confidence=each, **options)
        for name, scores in columns.items()
    }
    return ClassAudits(audits, confidence)


def _columns(y_score: Any, classes: Sequence[Any] | None) -> dict[Any, Any]:
    """The scores of each class by its name."""
    frame: Any = None if isinstance(y_score, Mapping) else as_frame(y_score)
    if isinstance(y_score, Mapping):
        names, columns = list(y_score), list(y_score.values())
    elif hasattr(frame, "columns"):
        names, columns = list(frame.columns), [frame.get_column(name) for name in frame.columns]
    else:
        array = np.asarray(y_score)
        if array.ndim != 2:
            raise InputError(f"must have shape (n_samples, n_classes), got {array.shape}", "y_score")
        names, columns = list(range(array.shape[1])), list(array.T)
    if classes is not None:
        names = list(classes)
        if len(set(names)) != len(names) or len(names) != len(columns):
            raise InputError(
                f"must name each of {len(columns)} columns of {setting('y_score')}, got {names}", "classes"
            )
    return dict(zip(names, columns, strict=True))
