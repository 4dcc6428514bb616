"""A policy: what is to be checked and how a bound is decided, in a file written before scores are read."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, get_args

from localparity._io._numbers import Decimal
from localparity._types import (
    Compare,
    Criterion,
    HigherIs,
    IntervalMethod,
    Missing,
    MissingGroups,
    RangeOption,
)
from localparity._validation import InputError, as_choice, as_count, as_fraction, as_probability, unknown_name
from localparity.auditing._answer import DecideBy, NotAssessed
from localparity.auditing._files import AuditColumns
from localparity.auditing._options import AuditOptions
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.metrics._mcdp import PAPER_EPSILONS
from localparity.monitoring import Watch

_MOST_BYTES = 1_000_000
_PYPROJECT, _TABLE = "pyproject.toml", "localparity"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The files and columns, the question, and the bound; fields that `AuditOptions` has mean the same."""

    files: tuple[str, ...] = ()
    table: str | None = None
    score: str | None = None
    group: tuple[str, ...] = ()
    label: str | None = None
    target: str | None = None
    weight: str | None = None
    cluster: str | None = None
    person_id: str | None = None
    control: tuple[str, ...] = ()
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | None = None
    normalise_groups: bool = False
    epsilons: tuple[float, ...] = PAPER_EPSILONS
    criterion: Criterion = "demographic_parity"
    compare: Compare = "between_groups"
    score_range: RangeOption = (0.0, 1.0)
    threshold: float | None = None
    pos_label: str | int | None = None
    higher_is: HigherIs | None = None
    min_group_size: int = DISCLOSURE_LIMIT
    missing_groups: MissingGroups = "raise"
    missing_values: tuple[str, ...] = ()
    missing: Missing = "raise"
    confidence: float = 0.95
    method: IntervalMethod | None = None
    n_resamples: int = 1000
    random_state: int = 0
    max_mcdp: float | None = None
    decide_by: DecideBy = "estimate"
    required_groups: tuple[str, ...] = ()
    not_assessed: NotAssessed = "fail"
    min_ratio: float | None = None
    scoring_rates: bool = False
    cutoff: float | None = None
    decision: str | None = None
    data_source: str | None = None
    distribution_date: str | None = None
    alarm_rate: float = 0.05

    def __post_init__(self) -> None:
        self._check_kinds()
        object.__setattr__(self, "epsilons", _numbers("epsilons", self.epsilons))
        if not isinstance(self.score_range, str):
            ends = _numbers("score_range", self.score_range)
            if len(ends) != 2 or not ends[0] < ends[1]:
                raise InputError(f"must be [low, high], 'data' or 'rank', got {list(ends)}", "score_range")
            object.__setattr__(self, "score_range", ends)
        for name in ("max_mcdp", "min_ratio"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, as_fraction(getattr(self, name), name))
        for name, choices in _CHOICES.items():
            as_choice(getattr(self, name), name, choices)
        object.__setattr__(self, "alarm_rate", as_probability(self.alarm_rate, "alarm_rate"))
        as_count(self.random_state, "random_state", at_least=0)
        if self.distribution_date is not None:
            _check_date("distribution_date", self.distribution_date)
        object.__setattr__(self, "epsilons", self.options().epsilons)
        if self.group:
            _ = self.columns.groups

    def _check_kinds(self) -> None:
        """Check that texts are texts and numbers are numbers."""
        for name in _TEXTS:
            object.__setattr__(self, name, _texts(name, getattr(self, name)))
        for name in _TEXT:
            _check_kind(name, getattr(self, name), (str, type(None)), "a text")
        for name in _NUMBERS:
            _check_kind(name, getattr(self, name), (int, float, type(None)), "a number")
        for name in ("normalise_groups", "scoring_rates"):
            if not isinstance(getattr(self, name), bool):
                raise InputError(f"must be true or false, got {getattr(self, name)!r}", name)
        _check_kind("pos_label", self.pos_label, (str, int, type(None)), "a text or a whole number")

    def options(self) -> AuditOptions:
        """The question of an audit."""
        same = {field.name for field in fields(AuditOptions)} & {field.name for field in fields(self)}
        return AuditOptions(**{name: getattr(self, name) for name in same})

    @property
    def columns(self) -> AuditColumns:
        """The columns that are read."""
        names = ("score", "label", "weight", "cluster", "target")
        columns = {name: getattr(self, name) for name in names}
        return AuditColumns(group=self.group, control=self.control or None, **columns)

    @property
    def bound(self) -> dict[str, Any]:
        """The bound, as a document takes it."""
        return {name: getattr(self, name) for name in BOUND}

    @property
    def watch(self) -> Watch:
        """The question of a monitor; of several epsilons, the smallest."""
        same = ("criterion", "compare", "min_group_size", "confidence", "max_mcdp", "alarm_rate")
        return Watch(epsilon=min(self.epsilons), **{name: getattr(self, name) for name in same})

    def to_toml(self) -> str:
        """The fields that differ from their defaults, as a file."""
        changed = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if getattr(self, field.name) != field.default
        }
        return "".join(f"{name} = {_toml(value)}\n" for name, value in changed.items())


BOUND = ("max_mcdp", "decide_by", "required_groups", "not_assessed")
"""The fields that say what passes."""
_CHOICES: dict[str, tuple[str | None, ...]] = {
    "decide_by": get_args(DecideBy),
    "not_assessed": get_args(NotAssessed),
    "missing_groups": get_args(MissingGroups),
    "missing": get_args(Missing),
    "decimal": (None, *get_args(Decimal)),
}
_TEXTS = ("files", "group", "control", "missing_values", "required_groups")
_TEXT = (
    "table", "score", "label", "target", "weight", "cluster", "person_id", "encoding", "decimal", "sheet",
    "criterion", "compare", "higher_is", "missing_groups", "missing", "method", "decide_by", "not_assessed",
    "decision", "data_source", "distribution_date",
)  # fmt: skip
_NUMBERS = (
    "threshold", "min_group_size", "confidence", "n_resamples", "random_state", "max_mcdp", "min_ratio",
    "alarm_rate", "cutoff",
)  # fmt: skip


class PolicyFile(NamedTuple):
    """A policy, the text that it was read from, and the names that the text has."""

    policy: Policy
    text: str
    names: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """The checksum of the text."""
        return sha256(self.text.encode()).hexdigest()

    @classmethod
    def of(cls, policy: Policy) -> PolicyFile:
        """A policy that was made of options."""
        return parse_policy(policy.to_toml(), "policy.toml")


def read_policy(path: str | PathLike[str], sha256: str | None = None) -> PolicyFile:
    """The policy in a file, or under ``[tool.localparity]`` in a pyproject.toml; `sha256` is what it must be.

    The checksum of a table in a pyproject.toml is that of a file with the same lines.
    """
    content = Path(path).read_bytes()
    if len(content) > _MOST_BYTES:
        raise InputError(f"has more than {_MOST_BYTES:,} bytes", file=path)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise InputError("must be UTF-8", file=path) from None
    file = parse_policy(text, str(path), in_pyproject=Path(path).name == _PYPROJECT)
    if sha256 is not None and file.sha256 != sha256.lower():
        raise InputError(f"has the sha256 {file.sha256}, not {sha256}: it is another policy", file=path)
    return file


def parse_policy(text: str, name: str, *, in_pyproject: bool = False) -> PolicyFile:
    """A policy from its text; an error names the line."""
    try:
        values = _table(tomllib.loads(text), in_pyproject=in_pyproject)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{name} is not TOML: {error}") from None
    if values is None:
        raise InputError("has no table [tool.localparity]", file=name)
    known = [field.name for field in fields(Policy)]
    for key in values:
        if key not in known:
            line = line_of(text, key, in_pyproject=in_pyproject)
            raise InputError(f"{name}, line {line}: {unknown_name('key', key, known)}")
    try:
        policy = Policy(**values)
    except InputError as error:
        key = "group" if error.column or not error.argument else str(error.argument)
        at = line_of(text, key, in_pyproject=in_pyproject)
        raise InputError(f"{name}, line {at}: {error}" if at else f"{name}: {error}") from error
    return PolicyFile(policy, policy.to_toml() if in_pyproject else text, tuple(values))


def _table(values: Mapping[str, Any], *, in_pyproject: bool) -> dict[str, Any] | None:
    """The keys of a policy; None where there is no such table."""
    table: Any = values
    for name in ("tool", _TABLE) if in_pyproject else ():
        table = table.get(name) if isinstance(table, dict) else None
    return dict(table) if isinstance(table, dict) else None


def line_of(text: str, key: str, *, in_pyproject: bool = False) -> int | None:
    r"""The line on which a key begins; None where there is no such key.

    TOML is read line by line: the first lines that can be read and have the key end with its value, and the
    line after the last that could be read without it is where it begins.

    Examples
    --------
    >>> line_of('# why\nscore = "p"\ngroup = [\n  "sex",\n]\nmax_mcdp = 2\n', "group")
    3
    """
    lines, before = text.split("\n"), 0
    for end in range(1, len(lines) + 1):
        try:
            values = _table(tomllib.loads("\n".join(lines[:end])), in_pyproject=in_pyproject)
        except tomllib.TOMLDecodeError:
            continue
        if values is not None and key in values:
            return before + 1
        before = end
    return None


def _check_kind(name: str, value: Any, kinds: tuple[type, ...], expected: str) -> None:
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise InputError(f"must be {expected}, got {value!r}", name)


def _check_date(name: str, value: str) -> None:
    try:
        date.fromisoformat(value)
    except ValueError:
        raise InputError(f"must be a date such as 2026-01-31, got {value!r}", name) from None


def _texts(name: str, value: Any) -> tuple[str, ...]:
    """A text, or several."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, Sequence) or not all(isinstance(one, str) for one in values):
        raise InputError(f"must be a text or a list of texts, got {value!r}", name)
    return tuple(values)


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    """A number, or several."""
    values = value if isinstance(value, list | tuple) else [value]
    for one in values:
        _check_kind(name, one, (int, float), "a number or a list of numbers")
        if not math.isfinite(one):
            raise InputError(f"must be finite, got {one}", name)
    return tuple(map(float, values))


def _toml(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value).lower() if isinstance(value, bool) else repr(value)
