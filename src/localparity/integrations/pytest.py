"""pytest: a plugin that asserts a bound on MCDP and reports the audits; pytest finds it by its entry point.

pytest imports this module in every run, so nothing of localparity is imported before it is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import pytest

if TYPE_CHECKING:
    from localparity._types import ArrayLike, Groups
    from localparity.auditing import Audit
    from localparity.auditing._answer import DecideBy, NotAssessed
    from localparity.auditing._document import Document
    from localparity.auditing._files import Engine
    from localparity.auditing._options import AuditArguments
    from localparity.auditing._policy import Policy

__all__ = ["assert_mcdp"]

_OPTION = "--localparity-report"
_FORMS = (".json", ".md")

# The test that is running, and the texts of its audits.
_running: ContextVar[pytest.Item | None] = ContextVar("_running", default=None)
_audited = pytest.StashKey[list[str]]()


def assert_mcdp(
    y_true: ArrayLike | None = None,
    y_score: ArrayLike | None = None,
    *,
    sensitive_features: Groups | None = None,
    policy: str | PathLike[str] | None = None,
    max_mcdp: float = 0.1,
    epsilon: float = 0.0,
    decide_by: DecideBy = "estimate",
    required_groups: Sequence[str] = (),
    not_assessed: NotAssessed = "fail",
    **options: Unpack[AuditArguments],
) -> Audit:
    """Assert that MCDP(epsilon) is at most `max_mcdp`, as `localparity audit --max-mcdp` decides it.

    There is a fixture of the same name. ``pytest --localparity-report FILE`` writes every audit to a file,
    whether it passes or not.

    Parameters
    ----------
    y_true : array-like or None
        Labels 0 and 1; None if the criterion does not need them.
    y_score : array-like
        Scores inside `score_range`.
    sensitive_features : array-like, data frame or mapping of columns
        The group of each row.
    policy : path, optional
        A file that decides everything else, as ``localparity audit --policy`` reads it. Without scores, those
        of its files are audited; with scores, its columns are not read.
    max_mcdp : float
        The most that MCDP may be.
    epsilon : float
        The half-width of the windows.
    decide_by, required_groups, not_assessed
        What is compared with the bound, and which groups must be assessed, as in `Audit.passes`.
    **options
        Others of `localparity.audit`, such as ``criterion``. As in the command, ``min_group_size`` is 10 and
        ``random_state`` is 0 by default.

    Returns
    -------
    Audit

    Raises
    ------
    AssertionError
        If MCDP is above the bound, or a group that is required was not assessed. The message says where,
        between whom, and how sure that is.

    Examples
    --------
    >>> import localparity as lp
    >>> from localparity.integrations.pytest import assert_mcdp
    >>> census = lp.datasets.make_census(500, random_state=0)
    >>> sex = census.sensitive_features
    >>> audit = assert_mcdp(None, census.score, sensitive_features=sex, max_mcdp=0.4)
    >>> assert_mcdp(None, census.score, sensitive_features=sex, max_mcdp=0.1)
    Traceback (most recent call last):
    AssertionError: Above the bound of 10 points: Male (... people) and Female (...) differ by ...
    ...
    """
    __tracebackhide__ = True
    from localparity.auditing import audit

    bound: dict[str, Any] = {"max_mcdp": max_mcdp, "decide_by": decide_by}
    bound |= {"required_groups": required_groups, "not_assessed": not_assessed}
    rows: dict[str, Any] = {"sensitive_features": sensitive_features}
    if policy is not None:
        own = {**options, **bound, "epsilon": epsilon}
        audits, bound = _under_policy(policy, y_true, y_score, rows, own)
    else:
        arguments: Any = {"random_state": 0, "min_group_size": 10, **options, "epsilons": [epsilon]}
        audits = [audit(y_true, y_score, **rows, **arguments)]
    for audited in audits:
        _check(audited, bound)
    return audits[0]


_USUAL = {
    "max_mcdp": 0.1,
    "decide_by": "estimate",
    "not_assessed": "fail",
    "required_groups": (),
    "epsilon": 0,
}
_ARRAYS = ("control_features", "sample_weight", "cluster")


def _under_policy(
    path: str | PathLike[str], y_true: Any, y_score: Any, rows: dict[str, Any], own: dict[str, Any]
) -> tuple[list[Audit], dict[str, Any]]:
    """The audits of scores, or of a policy's files, and its bound; other arguments are refused."""
    from dataclasses import asdict

    from localparity._validation import InputError
    from localparity.auditing import Audit, audit
    from localparity.auditing._policy import read_policy

    policy = read_policy(path).policy
    for name, value in own.items():
        if name not in _ARRAYS and value != _USUAL.get(name):
            raise InputError(f"must be in {path}, which decides it, got {value!r}", name)
    if policy.max_mcdp is None:
        raise InputError("must have max_mcdp, which decides what passes", file=path)
    options = asdict(policy.options())
    if y_score is not None:
        arrays = {name: own[name] for name in _ARRAYS if name in own}
        return [audit(y_true, y_score, **rows, **arrays, **options)], policy.bound
    if not policy.files:
        raise InputError("must name files where no scores are passed", file=path)
    options |= asdict(policy.columns)
    return [Audit.read(table, engine=engine, **options) for table, engine in _opened(policy)], policy.bound


def _opened(policy: Policy) -> Iterator[tuple[Any, Engine]]:
    """The tables of a policy's files or databases, one open at a time, each with what counts it."""
    from localparity._io._table import open_table
    from localparity.engines._ibis import read_database

    reading = {name: getattr(policy, name) for name in ("encoding", "decimal", "sheet", "normalise_groups")}
    for file in policy.files:
        if policy.table is None:
            yield open_table(file, **reading), "duckdb"
            continue
        table = read_database(file, policy.table)
        yield table, "ibis"
        table.get_backend().disconnect()


def _check(audited: Audit, bound: dict[str, Any]) -> None:
    """Raise where an audit does not pass, and keep it with the test that runs."""
    __tracebackhide__ = True
    from localparity.auditing._document import Document

    item = _running.get()
    name = "scores" if item is None else item.nodeid
    least = audited.comparison.min_group_size
    document = Document(audits={name: audited}, title=name, min_group_size=least, **bound)
    if item is not None:
        _keep(item, document)
    answer = document.answer(name)
    assert answer.bound is not None
    if not answer.bound.passes:
        raise AssertionError("\n".join(answer.bound_lines))


@pytest.fixture(name="assert_mcdp")
def _assert_mcdp() -> Callable[..., Audit]:
    """Assert a bound on MCDP(epsilon): `localparity.integrations.pytest.assert_mcdp`."""
    return assert_mcdp


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the report."""
    meaning = "write the audits of all assert_mcdp calls to this file, which ends in .json or .md"
    parser.getgroup("localparity").addoption(_OPTION, metavar="FILE", help=meaning)


def pytest_configure(config: pytest.Config) -> None:
    """Collect the audits in the process that sees all tests."""
    file: str | None = config.getoption(_OPTION)
    if file is None:
        return
    if not file.endswith(_FORMS):
        raise pytest.UsageError(f"{_OPTION} must end in {' or '.join(_FORMS)}, got {file}")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Report(Path(file)), "localparity-report")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None]:
    """Remember which test runs."""
    token = _running.set(item)
    yield
    _running.reset(token)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any]:
    """Add the audits to the report of the test, which pytest-xdist sends to the main process."""
    outcome = yield
    if call.when == "teardown" and _audited in item.stash:
        vars(outcome.get_result())["localparity"] = item.stash[_audited]


def _keep(item: pytest.Item, document: Document) -> None:
    """Keep an audit, in the form of the report, with the test that made it."""
    file: str | None = item.config.getoption(_OPTION)
    if file is None:
        return
    from localparity.report._markdown import to_markdown

    text = document.to_json() if file.endswith(".json") else to_markdown(document)
    item.stash.setdefault(_audited, []).append(text)


class _Report:
    """The audits of a run of pytest, and the file that they go to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.audits: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in the audits of a test."""
        if hasattr(report, "localparity"):
            self.audits[report.nodeid] = report.localparity

    def pytest_sessionfinish(self) -> None:
        """Write the file anew; without audits, remove it."""
        from localparity._io._files import write_whole

        texts = [text for _, texts in sorted(self.audits.items()) for text in texts]
        if not texts:
            self.path.unlink(missing_ok=True)
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = _as_one(texts) if self.path.suffix == ".json" else "\n".join(texts)
        write_whole(self.path, text.encode())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where the file is."""
        count = sum(map(len, self.audits.values()))
        where = f" in {self.path}" if count else ""
        terminalreporter.write_sep("-", f"localparity: {count} audit{'' if count == 1 else 's'}{where}")


def _as_one(texts: list[str]) -> str:
    """The audits as one document, as `localparity audit --json` prints it."""
    documents = [json.loads(text) for text in texts]
    joined = {
        "title": "Audits of the tests",
        "min_group_size": min(document["min_group_size"] for document in documents),
        "audits": [audit for document in documents for audit in document["audits"]],
    }
    return json.dumps({**documents[0], **joined}, indent=2, ensure_ascii=False) + "\n"
