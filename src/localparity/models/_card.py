"""The model card: what people should know of a saved model before they use it."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from localparity._io._files import DESCRIPTION_SIZE, parse_sealed, read_regular, reading, seal_json
from localparity._io._sealed import Files, SealedFolder, read_folder
from localparity._text import markdown_text, percent
from localparity._types import Criterion
from localparity._validation import InputError
from localparity.metrics import Interval
from localparity.metrics._within import verdict_on
from localparity.models._bound import Measured
from localparity.models._rows import DISCLOSURE_LIMIT, FittedOn

DESCRIPTION = "model.json"
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
    estimator, parameters : str and dict
        The estimator's name and its parameters.
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
    epsilon, criterion : float and str
        The half-width of the windows, and who is compared.
    promise : str, optional
        What holds and for whom, in a sentence.
    held_out : Measured, optional
        How it does on people it was not fitted on.
    intended_use, not_intended_use : str
        What it is for, and what it is not for.
    explained : tuple of str
        What carries the gap of its scores, in sentences, as `localparity.explain` found it.
    model_sha256 : str, optional
        The sha256 of the description that it was saved with.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(1000, random_state=0)
    >>> repair = lp.models.ScoreRepair().fit(census.score, sensitive_features=census.sensitive_features)
    >>> card = replace(repair.card(), intended_use="Loans of a savings bank.")
    >>> card.max_mcdp, "Loans of a savings bank." in card.to_markdown()
    (0.05, True)
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
    held_out: Measured | None = None
    explained: tuple[str, ...] = ()
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
        try:
            return read_folder(Path(folder), DESCRIPTION, cls._of_model)
        except OSError as error:
            raise InputError(
                f"has no model card: {CARD} cannot be read ({error.strerror})", file=folder
            ) from error

    @classmethod
    def _of_model(cls, model: SealedFolder) -> ModelCard:
        """Return the card of a saved model."""
        path = model.data / CARD
        content = read_regular(path.parents[1], f"{path.parent.name}/{CARD}", at_most=DESCRIPTION_SIZE)
        with reading(str(path)):
            card = cls(**parse_sealed(content))
            card = replace(card, explained=tuple(str(line) for line in card.explained))
            if card.fitted_on is not None:
                card = replace(card, fitted_on=FittedOn(**vars(card)["fitted_on"]))
            if card.held_out is not None:
                held_out = dict(vars(card)["held_out"])
                interval = Interval(**held_out.pop("interval"))
                card = replace(card, held_out=Measured(**held_out, interval=interval))
            described = model.facts["estimator"], model.sha256
            if (card.estimator, card.model_sha256) != described:
                raise ValueError(f"it describes another model than {model.data.parent / DESCRIPTION}")
        return card

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def to_markdown(self) -> str:
        """Return the card as people read it."""
        bound = "none"
        if self.max_mcdp is not None:
            bound = f"MCDP({self.epsilon:g}) at most {percent(self.max_mcdp)}"
        sections = {
            "Intended use": [_one_line(self.intended_use)],
            "Not intended": [_one_line(self.not_intended_use)],
            "Bound": _list(
                {
                    "Bound": bound,
                    "People compared": self.criterion.replace("_", " "),
                    "Confidence": "none" if self.confidence is None else f"{self.confidence:g}",
                    "Promise": self.promise or _UNKNOWN,
                }
            ),
            "On people it was not fitted on": self._results(),
            "What carries the gap": [f"- {_one_line(line)}" for line in self.explained] or [f"- {_UNKNOWN}"],
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
        measured = self.held_out
        if measured is None or measured.interval is None or measured.noise_floor is None:
            return ["No audit is recorded. Audit the model before it is used."]
        interval = measured.interval
        ends = f"{percent(interval.low)} to {percent(interval.high)} at confidence {interval.confidence:g}"
        results = {
            "Rows": f"{measured.rows:,}",
            f"MCDP({self.epsilon:g})": f"{percent(measured.mcdp)} ({ends})",
            "Expected under parity": percent(measured.noise_floor),
            "Average precision": percent(measured.average_precision),
        }
        others = {
            "Area under the ROC curve": measured.auc,
            "Right at the decision cutoff": measured.accuracy,
            "Calibration error": measured.calibration_error,
        }
        results |= {name: percent(value) for name, value in others.items() if value is not None}
        if measured.brier is not None:
            results["Brier score"] = f"{measured.brier:.4f}"
        if self.max_mcdp is not None:
            results["Verdict on the bound"] = verdict_on(interval, self.max_mcdp)
        return _list(results)

    def _people(self) -> list[str]:
        """Return the lines of the people that it was fitted on."""
        lines = {"sha256 of the file": self.file_sha256 or _UNKNOWN}
        fitted_on = self.fitted_on
        if fitted_on is None:
            return _list({"Rows": _UNKNOWN, **lines})
        groups = {
            f"Group {name}": f"{rows:,}"
            if rows is not None
            else f"withheld (a group has fewer than {DISCLOSURE_LIMIT})"
            for name, rows in fitted_on.groups.items()
        }
        rows = {"Rows": f"{fitted_on.rows:,}"}
        return _list({**rows, **groups, **lines, "sha256 of the rows": fitted_on.rows_sha256})


def card_files(card: ModelCard) -> Files:
    """Return a card as the files that are saved."""
    return {CARD: seal_json(card.to_dict()), _MARKDOWN: card.to_markdown().encode()}


def versions_of(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python, of what the package always needs, and of further libraries."""
    names = ("localparity", "numpy", "scikit-learn", *libraries)
    return {"python": platform.python_version(), **{name: _version(name) for name in names}}


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:  # imported from a source tree that is not installed
        return "unknown"


def _flat(parameters: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Return the parameters that are not None as texts, those of a wrapped estimator behind its name."""
    texts: dict[str, str] = {}
    for name, value in parameters.items():
        if isinstance(value, dict):
            texts |= _flat(value, f"{prefix}{name}.")
        elif value is not None:
            texts[prefix + name] = json.dumps(value)
    return texts


def _list(entries: dict[str, str]) -> list[str]:
    """Return each entry as an item of a list."""
    return [f"- **{_one_line(name)}:** {_one_line(value)}" for name, value in entries.items()]


def _one_line(text: str) -> str:
    """Return a text that Markdown shows as it is, on one line."""
    return markdown_text(" ".join(text.split()))
