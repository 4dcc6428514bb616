"""The model card: what people should know of a saved model before they use it."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sklearn.metrics import average_precision_score

from localparity._io._files import parse_sealed, read_settled, reading, seal_json, sha256_of, write_whole
from localparity._types import Criterion, FloatArray, Seed
from localparity._validation import InputError
from localparity.metrics import Interval
from localparity.metrics._window import percent
from localparity.metrics._within import within_bound
from localparity.models._rows import DISCLOSURE_LIMIT, FittedOn, TrainingRows
from localparity.uncertainty import mcdp_interval, permutation_test

# How a model does on people it was not fitted on.


@dataclass(frozen=True)
class HeldOutAudit:
    """A short audit of a model's scores on people it was not fitted on.

    Attributes
    ----------
    rows : int
        How many rows there are.
    average_precision : float
        The average precision.
    interval : Interval
        MCDP(epsilon), by the bootstrap.
    noise_floor : float
        MCDP(epsilon) expected under parity, with these scores.

    Examples
    --------
    >>> import localparity as lp
    >>> found = lp.results.HeldOutAudit(500, 0.77, lp.results.Interval(0.02, 0.04, 0.06, 0.95), 0.03)
    >>> found.interval.estimate <= 0.05
    True
    """

    rows: int
    average_precision: float
    interval: Interval
    noise_floor: float


def audit_held_out(
    rows: TrainingRows,
    scores: FloatArray,
    *,
    epsilon: float,
    criterion: Criterion,
    confidence: float,
    n_resamples: int,
    random_state: Seed,
) -> HeldOutAudit:
    """Return the audit of a model's scores of some rows."""
    options: dict[str, Any] = {
        "sensitive_features": rows.groups,
        "sample_weight": rows.weights,
        "epsilon": epsilon,
        "criterion": criterion,
        "n_resamples": n_resamples,
        "random_state": random_state,
    }
    scored = (rows.labels, scores)
    return HeldOutAudit(
        rows.labels.size,
        float(average_precision_score(*scored, sample_weight=rows.weights)),
        mcdp_interval(*scored, confidence=confidence, method="bootstrap", **options),
        permutation_test(*scored, **options).null_mean,
    )


CARD, _MARKDOWN = "model_card.json", "model_card.md"
_UNKNOWN = "not recorded"
_INTENDED = (
    "Scoring people of the population that the rows it was fitted on were drawn from, with an audit of its "
    "scores on the people it is used for."
)
_NOT_INTENDED = (
    "Other populations, groups that it was not fitted on, and decisions about people without human review. "
    "A bound on local disparity does not show that a use is lawful or fair."
)


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """What people should know of a model: how it was made, on whom, what is promised, and how it does.

    Every estimator's `card` makes one, and its `save` writes it as `model_card.md` and `model_card.json`. It
    only describes: loading a model does not depend on it.

    Attributes
    ----------
    estimator : str
        The estimator's name.
    parameters : dict
        Its parameters.
    needs_group : bool
        Whether the group of each person is needed at prediction.
    versions : dict
        The versions of Python and of the libraries.
    fitted_on : FittedOn, optional
        How many people it was fitted on, of which groups.
    file_sha256 : str, optional
        The sha256 of the file that the people were read from.
    max_mcdp, confidence : float, optional
        The bound and its confidence, if there are any.
    epsilon : float
        The half-width of the windows.
    criterion : str
        Who is compared.
    promise : str, optional
        What holds and for whom, in a sentence.
    held_out : HeldOutAudit, optional
        How it does on people it was not fitted on.
    intended_use, not_intended_use : str
        What it is for, and what it is not for.
    model_sha256 : str, optional
        The sha256 of the description that it was saved with.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> repair = lp.models.ScoreRepair().fit(census.score, sensitive_features=census.sensitive_features)
    >>> card = replace(repair.card(), intended_use="Loans of a savings bank.")
    >>> card.max_mcdp, card.needs_group
    (0.05, True)
    >>> "Loans of a savings bank." in card.to_markdown()
    True
    """

    estimator: str
    parameters: dict[str, Any]
    needs_group: bool
    versions: dict[str, str]
    fitted_on: FittedOn | None = None
    file_sha256: str | None = None
    max_mcdp: float | None = None
    epsilon: float = 0.0
    criterion: Criterion = "demographic_parity"
    confidence: float | None = None
    promise: str | None = None
    held_out: HeldOutAudit | None = None
    intended_use: str = _INTENDED
    not_intended_use: str = _NOT_INTENDED
    model_sha256: str | None = None

    @classmethod
    def read(cls, folder: str | Path) -> ModelCard:
        """Read the card of a model folder.

        Parameters
        ----------
        folder : path
            The folder that an estimator's `save` wrote. A card that is missing, damaged or of another model
            than the folder's is a ValueError.

        Returns
        -------
        ModelCard
        """
        path = Path(folder) / "model.json"
        try:
            return read_settled(path, lambda model: cls._read(path, model))
        except OSError as error:
            raise InputError(
                f"has no model card: {CARD} cannot be read ({error.strerror})", file=folder
            ) from error

    @classmethod
    def _read(cls, described: Path, model: bytes) -> ModelCard:
        """Return the card of a model with such a description."""
        with reading(str(described)):
            path = described.parent / str(parse_sealed(model)["data"]) / CARD
        content = path.read_bytes()
        with reading(str(path)):
            found = cls(**parse_sealed(content))
            if found.fitted_on is not None:
                found = replace(found, fitted_on=FittedOn(**vars(found)["fitted_on"]))
            if found.held_out is not None:
                held_out = dict(vars(found)["held_out"])
                interval = Interval(**held_out.pop("interval"))
                found = replace(found, held_out=HeldOutAudit(**held_out, interval=interval))
            if found.model_sha256 != sha256_of(model):
                raise ValueError(f"it describes another model than {described}")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def to_markdown(self) -> str:
        """Return the card as people read it.

        Returns
        -------
        str
        """
        bound = (
            f"MCDP({self.epsilon:g}) at most {percent(self.max_mcdp)}"
            if self.max_mcdp is not None
            else "none"
        )
        sections = {
            "Intended use": [_text(self.intended_use)],
            "Not intended": [_text(self.not_intended_use)],
            "Bound": _list(
                {
                    "Bound": bound,
                    "People compared": self.criterion.replace("_", " "),
                    "Confidence": "none" if self.confidence is None else f"{self.confidence:g}",
                    "Promise": self.promise or _UNKNOWN,
                }
            ),
            "On people it was not fitted on": self._results(),
            "Fitted on": self._people(),
            "Model": _list(
                {
                    "Estimator": self.estimator,
                    "At prediction it needs": "features and groups" if self.needs_group else "features alone",
                    **_flat(self.parameters),
                }
            ),
            "Versions": _list(self.versions),
        }
        parts = [f"## {title}\n\n" + "\n".join(lines) for title, lines in sections.items()]
        return "\n\n".join(["# Model card", *parts]) + "\n"

    def _results(self) -> list[str]:
        """Return the lines of the audit on held-out people."""
        found = self.held_out
        if found is None:
            return ["No audit is recorded. Audit the model before it is used."]
        interval = found.interval
        ends = f"{percent(interval.low)} to {percent(interval.high)} at confidence {interval.confidence:g}"
        results = {
            "Rows": f"{found.rows:,}",
            f"MCDP({self.epsilon:g})": f"{percent(interval.estimate)} ({ends})",
            "Expected under parity": percent(found.noise_floor),
            "Average precision": percent(found.average_precision),
        }
        if self.max_mcdp is not None:
            results["Within the bound"] = "yes" if within_bound(interval.estimate, self.max_mcdp) else "no"
        return _list(results)

    def _people(self) -> list[str]:
        """Return the lines of the people that it was fitted on."""
        lines = {"sha256 of the file": self.file_sha256 or _UNKNOWN}
        found = self.fitted_on
        if found is None:
            return _list({"Rows": _UNKNOWN, **lines})
        groups = {
            f"Group {name}": f"{rows:,}"
            if rows is not None
            else f"withheld (a group has fewer than {DISCLOSURE_LIMIT})"
            for name, rows in found.groups.items()
        }
        return _list({"Rows": f"{found.rows:,}", **groups, **lines, "sha256 of the rows": found.rows_sha256})


def versions_of(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python, of what the package always needs, and of further libraries."""
    names = ("localparity", "numpy", "scikit-learn", *libraries)
    return {"python": platform.python_version(), **{name: _version(name) for name in names}}


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:  # imported from a source tree that is not installed
        return "unknown"


def show_card(card: ModelCard, folder: Path) -> None:
    """Write a card beside a model's description, where people look for it."""
    write_whole(folder / CARD, seal_json(card.to_dict()), durable=True)
    write_whole(folder / _MARKDOWN, card.to_markdown().encode(), durable=True)


def remove_shown_card(folder: Path) -> None:
    """Remove what people see of the card of a model that is about to be replaced."""
    for name in (CARD, _MARKDOWN):
        (folder / name).unlink(missing_ok=True)


def _flat(parameters: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Return the parameters that are not None as texts, those of a wrapped estimator behind its name.

    Examples
    --------
    >>> _flat({"max_mcdp": 0.05, "estimator": {"estimator": "Trees", "strength": None}})
    {'max_mcdp': '0.05', 'estimator.estimator': '"Trees"'}
    """
    found: dict[str, str] = {}
    for name, value in parameters.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{name}.")
        elif value is not None:
            found[prefix + name] = json.dumps(value)
    return found


def _list(entries: dict[str, str]) -> list[str]:
    """Return each entry as an item of a list."""
    return [f"- **{_text(name)}:** {_text(value)}" for name, value in entries.items()]


def _text(text: str) -> str:
    r"""Return a text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> print(_text("a_b\n<script>"))
    a\_b \<script\>
    """
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", " ".join(text.split()))
