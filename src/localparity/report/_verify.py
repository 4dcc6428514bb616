"""Check a bundle: that its files agree, that its numbers follow from its counts, or from the data again."""

from __future__ import annotations

import json
import math
import re
import stat
import types
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

import numpy as np

from localparity._io._files import sha256_of
from localparity._text import group_text
from localparity._types import Group
from localparity._validation import InputError
from localparity._version import __version__
from localparity.auditing._answer import (
    Answer,
    BoundResult,
    NotAssessed,
    Spot,
    bound_result,
    named_pair,
    said_of,
    share_ends,
)
from localparity.auditing._audit import Audit
from localparity.auditing._document import FORMAT, FORMAT_VERSION, Document, plain_audit
from localparity.auditing._findings import PairSummary
from localparity.auditing._policy import BOUND, PolicyFile, parse_policy
from localparity.auditing._tables import Shown
from localparity.counts import Comparison, ScoreCounts
from localparity.counts._atoms import Atoms
from localparity.counts._comparison import EVERYONE
from localparity.counts._disclosure import DISCLOSURE_LIMIT
from localparity.counts._rows import ClusteredRows
from localparity.counts._score_counts import strata_of, with_everyone
from localparity.metrics import CategoryTable, ScoringRates
from localparity.metrics._gap_curve import GapCurve, curve_between, worst_interval
from localparity.report._bundle import CHANGES, CHECKSUMS, METHODS, RECORD, RECORD_VERSION
from localparity.report._markdown import markdown_of
from localparity.report.page._page import MOST_ROWS
from localparity.uncertainty._bands import Steps, finite_sample_radii
from localparity.uncertainty._impact import shared_error
from localparity.uncertainty._intervals import MeasuredPair, band_intervals, finite_sample_intervals
from localparity.uncertainty._resampling import least_resamples

_NAMES = (
    "report.html", "audit.json", "audit.md", "command.txt", "record.json", "policy.toml", "model_card.md",
    "model_card.json",
)  # fmt: skip
_NEEDED = ("report.html", "audit.json", "audit.md", "command.txt", "record.json")
_MOST_BYTES = 200_000_000
_CLOSE = 1e-12
"""Numbers that differ by less, relative to their size, differ by how a machine rounds."""
_OPTIONAL = (
    "unknown_groups", "within_strata", "impact_ratios", "scoring_rates", "selection_rates", "same_people",
)  # fmt: skip
"""Optional keys of an audit in JSON."""

_RATES = ("scoring_rates", "selection_rates")
_OWN_WORDS = ("unknown_groups", "strata", "ratios", "paired")

Result = Literal["agrees", "differs", "not checked", "cannot be told"]
"""The last is what another version can check."""


@dataclass(frozen=True)
class Check:
    """What was checked, with what result, in a sentence."""

    result: Result
    text: str


# A zip file that anybody may have made: nothing is unpacked, and no more is read than a bundle may have.


def read_bundle(path: Path) -> dict[str, bytes]:
    """The files of a bundle by their names; one that no audit writes is an error."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _files(archive)
    except (zipfile.BadZipFile, EOFError, RuntimeError, zlib.error) as error:
        raise InputError(f"is not a bundle: {error}", file=path) from None


def _files(archive: zipfile.ZipFile) -> dict[str, bytes]:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    known = {*_NAMES, CHECKSUMS}
    for name, times in Counter(names).items():
        if name not in known or times > 1:
            raise zipfile.BadZipFile(f"it has {name!r}" + (" twice" if times > 1 else ""))
    for entry in entries:
        if stat.S_ISLNK(entry.external_attr >> 16) or entry.is_dir() or entry.flag_bits & 1:
            raise zipfile.BadZipFile(f"{entry.filename!r} is a link, a folder or encrypted")
    if sum(entry.file_size for entry in entries) > _MOST_BYTES:
        raise zipfile.BadZipFile(f"it has more than {_MOST_BYTES:,} bytes")
    found = {}
    for entry in entries:
        with archive.open(entry) as stream:
            found[entry.filename] = stream.read(entry.file_size + 1)
        if len(found[entry.filename]) != entry.file_size:
            raise zipfile.BadZipFile(f"{entry.filename!r} has another size than it says")
    missing = [name for name in (*_NEEDED, CHECKSUMS) if name not in found]
    if missing:
        raise zipfile.BadZipFile(f"it has no {missing[0]}")
    return found


def _parse(content: bytes, name: str) -> dict[str, Any]:
    """JSON of finite numbers, in which no key stands twice."""

    def refuse(text: str) -> NoReturn:
        raise ValueError(f"{text[:20]} is no number")

    def finite(text: str) -> float:
        return number if math.isfinite(number := float(text)) else refuse(text)

    def whole(text: str) -> int:
        return int(text) if len(text) < 20 else refuse(text)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        return found if len(found) == len(pairs) else refuse("a key that stands twice")

    try:
        plain = json.loads(
            content.decode(),
            parse_constant=refuse,
            parse_float=finite,
            parse_int=whole,
            object_pairs_hook=once,
        )
    except (ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", file=name) from None
    if not isinstance(plain, dict):
        raise InputError("cannot be read: it is no object", file=name)
    return plain


# Audits from their JSON, without the counts that they came from.


def _restored(kind: Any, plain: Any, place: str) -> Any:
    """A value of a type from what JSON has of it; what does not fit is an error that names the place."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Group:
        return _group(plain)
    if is_dataclass(kind):
        return _restored_object(kind, plain, place)
    if origin in (Union, types.UnionType):
        return _restored(_fitting(parts, plain), plain, place)
    if origin is tuple and isinstance(plain, list):
        each = parts[:1] * len(plain) if parts[-1] is Ellipsis else parts
        if len(each) == len(plain):
            return tuple(_restored(one, value, place) for one, value in zip(each, plain, strict=True))
    if origin in (dict, Mapping) and isinstance(plain, dict):
        return {parts[0](key): _restored(parts[1], value, place) for key, value in plain.items()}
    if not _fits(kind, plain):
        raise InputError(f"has {plain!r:.40} at {place}", file="audit.json")
    return float(plain) if kind is float else plain


def _fitting(kinds: Sequence[Any], plain: Any) -> Any:
    """The one of several types that a value may be of."""
    fitting = [kind for kind in kinds if _fits(kind, plain)]
    return fitting[0] if fitting else next(kind for kind in kinds if kind is not type(None))


def _fits(kind: Any, plain: Any) -> bool:
    """Whether a value of JSON has a plain type."""
    if get_origin(kind) is Literal:
        return plain in get_args(kind)
    if kind is float:
        return isinstance(plain, int | float) and not isinstance(plain, bool)
    if get_origin(kind) is list:
        return isinstance(plain, list)
    return isinstance(kind, type) and type(plain) is kind


def _restored_object(kind: Any, plain: Any, place: str) -> Any:
    if not isinstance(plain, dict):
        raise InputError(f"has {plain!r:.40} at {place}", file="audit.json")
    hints, values = get_type_hints(kind), {}
    for field in fields(kind):
        if field.name in plain:
            values[field.name] = _restored(hints[field.name], plain[field.name], f"{place}/{field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"has no {field.name!r} at {place}", file="audit.json")
    return kind(**values)


def _group(plain: Any) -> Group:
    if isinstance(plain, dict):
        raise InputError("has a group that is an object", file="audit.json")
    return tuple(map(_group, plain)) if isinstance(plain, list) else plain


def _restored_audit(plain: Mapping[str, Any]) -> Audit:
    """An audit with its answer; without counts."""
    values = {name: plain[name] for name in ("criterion", "compare", "min_group_size")}
    comparison = Comparison(**values)
    confidence, audited = plain["confidence"], dict(plain)
    audited["pairs"] = [pair | {"intervals": _with_estimates(pair, confidence)} for pair in audited["pairs"]]
    hints = get_type_hints(Audit)
    kept = {
        name: _restored(hints[name], audited[name], f"/{name}")
        for name in hints
        if name in audited and name not in _OPTIONAL
    }
    audit = Audit(comparison=comparison, counts=ScoreCounts({}, clusters=_clusters(plain)), **kept)
    bound = None if plain["bound"] is None else _restored(BoundResult, plain["bound"], "/bound")
    largest = plain["answer"]["largest"]
    answer = _restored(Answer, {**plain["answer"], "pairs": [], "bound": None, "largest": largest}, "/answer")
    vars(audit)["assumptions"] = tuple(plain["assumptions"])
    vars(audit)["answer"] = replace(answer, bound=bound)
    return audit


def _clusters(plain: Mapping[str, Any]) -> ClusteredRows | None:
    """No rows of no clusters, where people are counted by clusters."""
    found = plain["provenance"] or {"columns": {}}
    none = np.zeros(0, dtype=np.int64)
    return ClusteredRows(none, none, none, ()) if "cluster" in found["columns"] else None


def _with_estimates(pair: Mapping[str, Any], confidence: float) -> list[dict[str, Any]]:
    ends = zip(pair["intervals"], pair["mcdp"], strict=True)
    return [{**interval, "estimate": mcdp, "confidence": confidence} for interval, mcdp in ends]


# Without the data: what the files say of each other, and what the counts allow.


def verify_files(files: Mapping[str, bytes]) -> Iterator[Check]:
    """What follows from the bundle alone."""
    names = [name for name in files if name != CHECKSUMS]
    sums = "".join(f"{sha256_of(files[name])}  {name}\n" for name in names)
    yield _check(sums == files[CHECKSUMS].decode(errors="replace"), f"checksums of {len(names)} files")
    plain, record = _parse(files["audit.json"], "audit.json"), _parse(files["record.json"], "record.json")
    for found, name, form, version in (
        (plain, "audit.json", FORMAT, FORMAT_VERSION),
        (record, "record.json", RECORD, RECORD_VERSION),
    ):
        if (found.get("format"), found.get("version")) != (form, version):
            raise InputError(f"is not {form} in version {version}, which this localparity reads", file=name)
    yield from _check_keys(files, plain, record)
    try:
        audits = {one["name"]: _restored_audit(one) for one in plain["audits"]}
        yield from _check_policy(files.get("policy.toml"), record, plain)
        yield from _check_json(plain, audits)
        document, version = _document(plain, audits, record), plain["localparity"]
        for check in (
            *_check_answers(audits, record),
            *_check_texts(files, plain, document),
            *_check_page(files["report.html"], plain, document),
        ):
            yield check if version == __version__ else _in_words_of(version, check)
        yield from _check_counts(plain, audits, record)
    except _UNFIT as error:
        yield _unfit(error)


def _in_words_of(version: str, check: Check) -> Check:
    """A check of words that another version wrote: where they differ, that version tells."""
    if check.result != "differs":
        return check
    return Check("cannot be told", f"{check.text}. pip install localparity=={version} checks its own words")


_KEYS = {
    "audit.json": {"format", "version", "localparity", "title", "min_group_size", "audits"},
    "record.json": {"format", "version", "methods", "policy_sha256", "policy", "counts"},
}


def _check_keys(
    files: Mapping[str, bytes], plain: Mapping[str, Any], record: Mapping[str, Any]
) -> Iterator[Check]:
    """What a bundle may not have, or not at this version."""
    for found, name in ((plain, "audit.json"), (record, "record.json")):
        if found.keys() != _KEYS[name]:
            yield Check(
                "differs", f"{name} has not the keys of an audit: {sorted(found.keys() ^ _KEYS[name])}"
            )
    if plain.get("localparity") == __version__ and record.get("methods") != METHODS:
        yield Check(
            "differs", f"localparity {__version__} has methods {METHODS}, not {record.get('methods')}"
        )
    if record.get("policy") is None and files["command.txt"].startswith(b"localparity audit "):
        yield Check("differs", "policy.toml: a bundle of the command has one")
    if "model_card.md" in files and (record.get("policy") or {}).get("score") is not None:
        yield Check("differs", "model_card.md: the scores are a column's, not a model's")


_UNFIT = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RuntimeError, AssertionError)
"""What values raise that no audit has."""


def _unfit(error: Exception) -> Check:
    reason = f"no {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
    return Check("differs", f"audit.json or record.json has what no audit has: {reason}")


def _check(agrees: bool, text: str) -> Check:
    return Check("agrees" if agrees else "differs", text)


def _check_policy(text: bytes | None, record: Mapping[str, Any], plain: Mapping[str, Any]) -> Iterator[Check]:
    """Whether the policy has its checksum, and is what the audits were made by."""
    known = record["policy"]
    if text is None or known is None:
        if text is not None or known is not None or record["policy_sha256"] is not None:
            yield Check("differs", "the policy: one of policy.toml and record.json has none")
        return
    name = f"policy.toml has the sha256 {record['policy_sha256']}"
    yield _check(sha256_of(text) == record["policy_sha256"], name)
    try:
        file = parse_policy(text.decode(), "policy.toml")
        whole = parse_policy("", "record.json")._replace(policy=type(file.policy)(**_lists(known)))
    except (InputError, TypeError, UnicodeDecodeError) as error:
        yield Check("differs", f"the policy: {error}")
        return
    differing = [name for name in file.names if getattr(file.policy, name) != getattr(whole.policy, name)]
    yield _check(not differing, "policy.toml is what record.json says" + _listed(differing))
    wrong = list(_against_policy(whole, plain))
    yield _check(not wrong, "the audit is what the policy asks for" + _listed(wrong))


def _lists(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _listed(names: Sequence[str]) -> str:
    return f": not so for {', '.join(names[:5])}" if names else ""


def _against_policy(file: PolicyFile, plain: Mapping[str, Any]) -> Iterator[str]:
    """The fields in which audits differ from their policy."""
    policy = file.policy
    same = ("criterion", "compare", "min_group_size", "n_resamples", "confidence", "higher_is", "threshold")
    for one in plain["audits"]:
        yield from (name for name in same if one[name] != getattr(policy, name))
        if tuple(finding["epsilon"] for finding in one["findings"]) != policy.epsilons:
            yield "epsilons"
        bound = one["bound"] or {"max_mcdp": None, "decide_by": policy.decide_by}
        yield from (name for name in ("max_mcdp", "decide_by") if bound[name] != getattr(policy, name))
        if (one["scoring_rates"] is not None) != policy.scoring_rates:
            yield "scoring_rates"
        rates = one["selection_rates"] or {"cutoff": None, "decision": None}
        if rates["decision"] != policy.decision or (policy.cutoff or 0.5) != (rates["cutoff"] or 0.5):
            yield "cutoff" if policy.decision is None else "decision"
        found = one["provenance"] or {"seed": None, "columns": {}}
        if found["seed"] != policy.random_state:
            yield "random_state"
        columns = {"group": list(policy.group), **{name: getattr(policy, name) for name in _COLUMNS}}
        yield from (
            name for name, column in columns.items() if found["columns"].get(name) != (column or None)
        )


_COLUMNS = ("score", "label", "target", "weight", "cluster")


def _check_json(plain: Mapping[str, Any], audits: Mapping[str, Audit]) -> Iterator[Check]:
    """Whether the JSON has everything once, and its verdicts follow from its intervals."""
    for one in plain["audits"]:
        audit = audits[one["name"]]
        expected = json.loads(json.dumps(plain_audit(audit), default=str))
        bound = audit.answer.bound
        expected |= {name: one[name] for name in (*_OPTIONAL, "name", "breakdown")}
        expected["bound"] = None if bound is None else asdict(bound)
        found = next(differences(one, json.loads(json.dumps(expected))), None)
        whose = f" of {one['name']}"
        yield _check(found is None, f"the JSON{whose} is whole" + ("" if found is None else f": {found}"))
        wrong = list(_wrong(audit, one))
        if audit.provenance is not None and audit.provenance.version != plain["localparity"]:
            wrong.append("the version")
        yield _check(not wrong, f"the numbers{whose} agree with each other" + _listed(wrong))


def _check_answers(audits: Mapping[str, Audit], record: Mapping[str, Any]) -> Iterator[Check]:
    """Whether the words and the shares of each answer are those of its numbers."""
    policy = record["policy"]
    for name, audit in audits.items():
        if policy is None or audit.missing_rows.groups:
            yield Check("not checked", f"the words of the answer of {name} against its numbers")
        else:
            wrong = [
                *_wrong_words(audit, policy),
                *_wrong_shares(audit, weighted=policy["weight"] is not None),
            ]
            yield _check(
                not wrong, f"the words of the answer of {name} are those of its numbers" + _listed(wrong)
            )


def _wrong_words(audit: Audit, policy: Mapping[str, Any]) -> Iterator[str]:
    """The sentences and numbers of an answer that the pairs do not give."""
    answer, (pair, place, _) = audit.answer, named_pair(audit)
    window = pair.window
    if audit.comparison.compare == "to_overall":
        window = replace(window, groups=(window.groups[0], EVERYONE))
    spot = Spot(window, answer.cutoff, answer.groups, answer.first, answer.second)
    again = said_of(audit, spot, **{name: policy[name] for name in BOUND})
    if place and audit.findings[place].epsilon != audit.findings[0].epsilon:
        del again["headline"]  # it names the cutoffs of another window
    yield from (name for name, value in again.items() if getattr(answer, name) != value)


def _wrong_shares(audit: Audit, *, weighted: bool) -> Iterator[str]:
    """The groups whose share above the cutoff, its interval or its gap cannot be."""
    answer, first, second = audit.answer, audit.answer.first, audit.answer.second
    sides = len(answer.groups) + (audit.comparison.compare == "to_overall")
    error = shared_error(audit.confidence, sides)
    for one in dict.fromkeys(filter(None, (*answer.groups, first, second))):
        if one.share_above is None or weighted or audit.counts.clusters is not None:
            continue
        people, ends = one.share_above * one.people, share_ends(one.share_above, one.people, error)
        if abs(people - round(people)) > _NEAR or (one.low, one.high) != ends:
            yield f"the share of {one.name}"
    if first is not None and second is not None:
        gap = (first.share_above or 0.0) - (second.share_above or 0.0) - answer.gap
        if gap < -_CUTOFF_NEAR or (answer.epsilon == 0.0 and gap > _CUTOFF_NEAR):
            yield f"the gap of {first.name} and {second.name}"


_CUTOFF_NEAR = 0.001 + 1e-9
"""How near to MCDP the gap at the cutoff of an answer is, which has few digits."""


def _wrong(audit: Audit, plain: Mapping[str, Any]) -> Iterator[str]:
    """What cannot be, whatever the data."""
    least = 1.0 / (1 + audit.n_resamples)
    for pair in audit.pairs:
        ends = zip(pair.intervals, pair.mcdp, strict=True)
        if not all(0.0 <= interval.low <= mcdp <= interval.high <= 1.0 for interval, mcdp in ends):
            yield f"the interval of {group_text(pair.groups)}"
        if not all(least * (1 - _CLOSE) <= value <= 1.0 for value in pair.p_values or ()):
            yield f"the p-value of {group_text(pair.groups)}"
    yield from _wrong_findings(audit, plain["confidence"])
    if plain["bound"] is not None and plain["unknown_groups"] is None:
        given = audit.answer.bound
        assert given is not None
        allowed: NotAssessed = "allow" if given.passes and given.not_assessed else "fail"
        again = bound_result(audit, given.max_mcdp, decide_by=given.decide_by, not_assessed=allowed)
        same = ("epsilon", "value", "could_be_chance", *(() if _required(plain) else ("verdict", "passes")))
        yield from (f"the bound's {name}" for name in same if getattr(again, name) != getattr(given, name))
        if given.not_assessed and given.verdict == "within":
            yield "the bound's verdict"
        words = {"within": "Within", "above": "Above", "undecided": "Undecided at"}
        if not (audit.answer.verdict or "").startswith(words[given.verdict]):
            yield "the words of the verdict"


def _wrong_findings(audit: Audit, confidence: float) -> Iterator[str]:
    """The findings that are not those of the worst pairs."""
    least = 1.0 / (1 + audit.n_resamples)
    for place, finding in enumerate(audit.findings):
        interval, worst = finding.interval, max(pair.mcdp[place] for pair in audit.pairs)
        if interval != worst_interval([pair.intervals[place] for pair in audit.pairs]):
            yield f"the interval of MCDP({finding.epsilon:g})"
        confident = interval.confidence == audit.confidence == confidence
        if not (
            confident
            and finding.mcdp == interval.estimate == worst
            and interval.low <= worst <= interval.high
        ):
            yield f"MCDP({finding.epsilon:g})"
        if finding.test is not None and not least * (1 - _CLOSE) <= finding.test.p_value <= 1.0:
            yield f"the p-value at {finding.epsilon:g}"


def _required(plain: Mapping[str, Any]) -> bool:
    """Whether the groups that are required were listed, which an audit does not keep."""
    return any("(nobody)" in name for name in plain["bound"]["not_assessed"]) or (
        bool(plain["left_out"]) and not plain["bound"]["not_assessed"]
    )


def _document(plain: Mapping[str, Any], audits: Mapping[str, Audit], record: Mapping[str, Any]) -> Document:
    """The document of restored audits, with the answers that the JSON has."""
    bound = next((one["bound"] for one in plain["audits"]), None) or {}
    document = Document(
        audits=audits,
        title=plain["title"],
        min_group_size=plain["min_group_size"],
        max_mcdp=bound.get("max_mcdp"),
        decide_by=bound.get("decide_by", "estimate"),
        scoring=_restored_rates(plain, "scoring_rates"),
        selection=_restored_rates(plain, "selection_rates"),
    )
    vars(document)["_answer_of"] = {name: audit.answer for name, audit in audits.items()}
    return document


def _restored_rates(plain: Mapping[str, Any], key: str) -> dict[str, ScoringRates]:
    """The rates of each audit that has them; what follows from them must be what the JSON says."""
    found = {}
    for one in plain["audits"]:
        if one[key] is not None:
            rates = _restored(ScoringRates, one[key], f"/{key}")
            again = json.loads(json.dumps(rates.to_dict()))
            different = next(differences(one[key], again, f"/{key}"), None)
            if different or any(map(_wrong_ratios, rates.tables)):
                raise InputError(
                    different or f"has impact ratios at /{key} that cannot be", file="audit.json"
                )
            found[one["name"]] = rates
    return found


def _wrong_ratios(table: CategoryTable) -> bool:
    """Whether ratios are not rates over one highest rate, or shares not those of the people in a table."""
    shown = [one for one in table.categories if one.people is not None]
    whole = len(shown) == len(table.categories)
    total = sum(one.people or 0 for one in shown)
    ratios = [(one.rate or 0.0, one.impact_ratio) for one in shown if one.impact_ratio is not None]
    highest = {round(rate / ratio, 9) for rate, ratio in ratios if ratio}
    return (
        any(not 0.0 <= (one.rate or 0.0) <= 1.0 for one in shown)
        or any(not 0.0 <= ratio <= 1.0 for _, ratio in ratios)
        or any((rate == 0.0) != (ratio == 0.0) for rate, ratio in ratios)
        or len(highest) > 1
        or (whole and bool(ratios) and max(ratio for _, ratio in ratios) != 1.0)
        or (whole and any(not _close((one.people or 0) / total, one.share or 0.0) for one in shown))
    )


def _check_texts(files: Mapping[str, bytes], plain: Mapping[str, Any], document: Document) -> Iterator[Check]:
    """Whether the Markdown and the command say what the JSON says."""
    text = files["audit.md"].decode(errors="replace")
    own = [name for name in _OPTIONAL if name not in _RATES]
    extra = [name for name in own if any(one[name] is not None for one in plain["audits"])]
    if not extra:
        found = difference(markdown_of(document), text)
        yield _check(found is None, "the Markdown says what the JSON says" + (f": {found}" if found else ""))
    else:
        parts = markdown_of(document, without=_OWN_WORDS).split("\n\n")
        missing = [part for part in parts if part.strip() not in text]
        yield _check(
            not missing, "the Markdown has what the JSON says" + _listed([one[:60] for one in missing])
        )
        yield Check("not checked", f"the words of the Markdown on {', '.join(extra)}")
    calls = dict.fromkeys(one["provenance"]["call"] for one in plain["audits"] if one["provenance"])
    commands = "".join(f"{call}\n" for call in calls).encode()
    yield _check(commands == files["command.txt"], "the command is that of the JSON")


class _Page(HTMLParser):
    """The text of a page, and the rows of its tables with the numbers behind the cells."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.rows: list[list[tuple[str, str | None, str | None]]] = []
        self._cell: tuple[list[str], str | None, str | None] | None = None
        self._hidden = 0
        self._is_numbers = False
        self.numbers = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a row or a cell."""
        values = dict(attrs)
        self._hidden += tag in ("script", "style")
        self._is_numbers = tag == "script" and values.get("id") == "numbers"
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self._cell = ([], values.get("data-value"), values.get("data-high"))

    def handle_endtag(self, tag: str) -> None:
        """End a cell."""
        self._hidden -= tag in ("script", "style")
        self._is_numbers &= tag != "script"
        if tag in ("td", "th") and self._cell is not None and self.rows:
            words, value, high = self._cell
            self.rows[-1].append((_spaced("".join(words)), value, high))
            self._cell = None
        if tag in ("p", "li", "td", "th", "h1", "h2", "dd", "dt", "summary"):
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        """Keep what is read."""
        if self._is_numbers:
            self.numbers += data
        if not self._hidden:
            self.text.append(data)
            if self._cell is not None:
                self._cell[0].append(data)


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _check_page(content: bytes, plain: Mapping[str, Any], document: Document) -> Iterator[Check]:
    """Whether the page has the numbers, sentences, facts and rows of tables that the JSON has."""
    page = _Page()
    page.feed(content.decode(errors="replace"))
    numbers = json.loads(json.dumps(plain))
    for audit in numbers["audits"]:
        audit["pairs"] = audit["pairs"][:MOST_ROWS]
    found = next(differences(_parse(page.numbers.encode(), "report.html"), numbers), None)
    yield _check(
        found is None, "the numbers behind the page are those of the JSON" + (f": {found}" if found else "")
    )
    lines = Counter(_spaced(line) for line in "".join(page.text).split("\n"))
    rows = Counter(tuple(row) for row in page.rows)
    expected = list(dict.fromkeys(_spaced(text) for text in _page_sentences(document)))
    missing = [text for text in expected if not lines[text]]
    tables = [
        table
        for section in document.sections("models", "findings", "pairs", "groups", "scoring")
        for table in section.tables
    ]
    for table in tables:
        for row in table.rows:
            cells = tuple(_page_cell(cell, number >= len(table.names)) for number, cell in enumerate(row))
            if not rows[cells]:
                missing.append(" ".join(row))
    count = sum(len(table.rows) for table in tables)
    said = f"the page has the {len(expected)} sentences and {count} rows of the JSON"
    yield _check(not missing, said + _listed([text[:80] for text in missing]))
    yield Check("not checked", "the page's charts and whatever else it says; the data tell")


def _page_cell(cell: str, is_number: bool) -> tuple[str, str | None, str | None]:
    if not is_number or not isinstance(cell, Shown):
        return _spaced(cell), None, None
    return _spaced(cell), f"{cell.value:.12g}", None if cell.high is None else f"{cell.high:.12g}"


def _page_sentences(document: Document) -> Iterator[str]:
    """What a page says in the words of the JSON, a line each."""
    several = len(document.audits) > 1
    yield document.models_headline if several else document.answer(next(iter(document.audits))).headline
    for name, audit in document.audits.items():
        answer = document.answer(name)
        yield f"{answer.rates}. {answer.sure}"
        yield from filter(None, (answer.verdict, answer.unknown, answer.caveats))
        yield from answer.by_outcome
        yield from audit.assumptions
    for section in document.sections("scoring"):
        yield from section.sentences
    for section in document.sections("audited", "scoring"):
        yield from (text for _, text in section.facts)


def _check_counts(
    plain: Mapping[str, Any], audits: Mapping[str, Audit], record: Mapping[str, Any]
) -> Iterator[Check]:
    """Whether the numbers are possible with the people in each step of scores."""
    counts, same_methods = record["counts"], record["methods"] == METHODS
    for name, audit in audits.items():
        steps = counts[name]
        if steps is None:
            least = max(plain["min_group_size"], DISCLOSURE_LIMIT)
            known = record["policy"] is not None and audit.counts.clusters is None
            may = not known or any(group.rows < least for group in audit.groups)
            said = f"the numbers of {name} against counts: the bundle "
            yield Check(*(("not checked", said + "may have none") if may else ("differs", said + "has none")))
            continue
        checked, wrong = _against_counts(audit, steps, same_methods=same_methods)
        said = f"{checked} numbers of {name} are possible with the counts, in steps of at least 10 people"
        yield _check(not wrong, said + _listed(wrong))
    if set(counts) != {one["name"] for one in plain["audits"]}:
        yield Check("differs", "the counts belong to other audits")


def _against_counts(audit: Audit, steps: Mapping[str, Any], *, same_methods: bool) -> tuple[int, list[str]]:
    """How many numbers were held against the counts, and which do not follow from them."""
    counts = _counts(audit, steps)
    atoms, error = counts.atoms, counts.rank_error
    wrong, checked = [], 0
    for group in audit.groups:
        found = atoms.get((group.group, group.label))
        checked += 1
        if found is None or found.size != group.rows:
            wrong.append(f"the rows of {group_text(group.group)}")
    by_label, curves = strata_of(counts, audit.comparison), list[GapCurve]()
    for pair in audit.pairs:
        sides = by_label[pair.label]
        sides = with_everyone(sides) if audit.comparison.compare == "to_overall" else sides
        curve = curve_between(counts, sides, pair.groups, pair.label)
        curves.append(curve)
        for finding, mcdp in zip(audit.findings, pair.mcdp, strict=True):
            bounds, checked = curve.mcdp_bounds(finding.epsilon), checked + 1
            if not finding.too_wide and not bounds.low - 1e-9 <= mcdp <= bounds.high + 1e-9:
                wrong.append(f"MCDP({finding.epsilon:g}) of {group_text(pair.groups)}, {mcdp:g}")
    if same_methods:
        wrong += [f"the interval of {group_text(groups)}" for groups in _wrong_intervals(audit, curves)]
        checked += len(curves) * len(audit.findings)
    shares = list(_shares(audit, atoms)) if len(by_label) == 1 else []
    wrong += [f"the share of {name}" for name, share, mine in shares if abs(share - mine) > error + 1e-9]
    return checked + len(shares), wrong


def _wrong_intervals(audit: Audit, curves: Sequence[GapCurve]) -> Iterator[tuple[Group, Group]]:
    """The pairs whose intervals are not those of the method, which MCDP and the people of a pair decide.

    A lower end is MCDP less the radius of a band, or 0 where the test of parity is not rejected. An upper end
    is known at epsilon 0; above that it is no larger. A bootstrap's radius is taken as it is written.
    """
    radii, one_sided = np.array([pair.radius for pair in audit.pairs]), 0.5 + 0.5 * audit.confidence
    pairs = [_measured(audit, *both) for both in zip(audit.pairs, curves, strict=True)]
    if audit.method == "finite_sample":
        known = np.abs(finite_sample_radii(pairs, audit.confidence) - radii) < _NEAR
        lows = finite_sample_intervals(pairs, one_sided, "lower")
        at_0 = [_at_0(pair) for pair in pairs]
        highs = [
            [one.high] * len(audit.findings) for (one,) in finite_sample_intervals(at_0, one_sided, "upper")
        ]
    else:
        known, lows = radii >= 0.0, band_intervals(pairs, radii, audit.confidence)
        highs = [[one.high for one in row] for row in lows]
    decides = audit.n_resamples >= least_resamples(audit.confidence)
    for pair, is_known, low, high in zip(audit.pairs, known, lows, highs, strict=True):
        for place, (one, finding) in enumerate(zip(pair.intervals, audit.findings, strict=True)):
            accepted = (
                decides and pair.p_values is not None and pair.p_values[place] > 1.0 - one.confidence + 1e-9
            )
            is_exact = audit.method == "bootstrap" or finding.epsilon == 0.0
            is_known &= abs(one.low - (0.0 if accepted else low[place].low)) < _NEAR
            is_known &= abs(one.high - high[place]) < _NEAR if is_exact else one.high < high[place] + _NEAR
        if not is_known:
            yield pair.groups


_NEAR = 1e-7
"""How near an end must be that is searched for by halving."""


def _measured(audit: Audit, pair: PairSummary, curve: GapCurve) -> MeasuredPair:
    """A pair as its interval is made from it; its largest gap is known where an epsilon is 0."""
    epsilons, mcdp = np.array([finding.epsilon for finding in audit.findings]), np.array(pair.mcdp)
    first, second = pair.groups
    largest = float(mcdp[0]) if epsilons[0] == 0.0 else curve.mcdp_bounds(0.0).high
    return MeasuredPair(
        groups=(first, EVERYONE if audit.comparison.compare == "to_overall" else second),
        label=pair.label,
        sizes=curve.sizes,
        epsilons=epsilons,
        least=mcdp,
        mcdp=mcdp,
        most=mcdp,
        largest=largest,
        steps=Steps.of(curve),
    )


def _at_0(pair: MeasuredPair) -> MeasuredPair:
    """The same at epsilon 0 alone, where MCDP is the largest gap."""
    mcdp = np.array([pair.largest])
    return replace(pair, epsilons=np.zeros(1), least=mcdp, mcdp=mcdp, most=mcdp)


def _counts(audit: Audit, steps: Mapping[str, Any]) -> ScoreCounts:
    """The counts of a bundle; no more is unknown of them than what lies in the largest step."""
    atoms = {}
    for one in steps["groups"]:
        scores, rows, weights = (np.asarray(one[name], dtype=float) for name in ("scores", "rows", "weights"))
        if not scores.size == rows.size == weights.size > 0:
            raise InputError(f"has not as many scores as rows for {one['group']}", file="record.json")
        if rows.min() < DISCLOSURE_LIMIT or (np.diff(scores) <= 0.0).any() or weights.min() < 0.0:
            raise InputError(f"has steps of {one['group']} that cannot be", file="record.json")
        atoms[_group(one["group"]), one["label"]] = Atoms(scores, weights, rows.astype(np.int64))
    widest = max(float((one.weights / one.weights.sum()).max()) for one in atoms.values())
    error = min(float(steps["rank_error"]), widest) + _CLOSE
    return ScoreCounts(atoms, audit.score_range, rank_error=error, ends_known=False)


def _shares(audit: Audit, atoms: Mapping[Any, Atoms]) -> Iterator[tuple[str, float, float]]:
    """The groups of an answer, each with its share above the cutoff and that of the counts."""
    answer, label = audit.answer, audit.comparison.labels[0]
    named = {group_text(group): one for (group, own), one in atoms.items() if own == label}
    for share in answer.groups:
        if share.share_above is not None and answer.cutoff is not None and share.name in named:
            yield share.name, share.share_above, named[share.name].share_above(answer.cutoff)


# With the data: everything again.


def verify_data(
    files: Mapping[str, bytes], recompute: Callable[[Mapping[str, Any], PolicyFile], Mapping[str, bytes]]
) -> Iterator[Check]:
    """Whether the same files come from the data; `recompute` makes them from the JSON and the policy."""
    plain, record = _parse(files["audit.json"], "audit.json"), _parse(files["record.json"], "record.json")
    if record.get("policy") is None:
        yield Check(
            "cannot be told", "the numbers against the data: only the command's bundles have a policy"
        )
        return
    if record.get("methods") != METHODS:
        changed = "".join(f"; {text}" for text in CHANGES.values())
        yield Check(
            "cannot be told",
            f"the numbers against the data: localparity {plain.get('localparity')} made them by other methods"
            f"{changed}. pip install localparity=={plain.get('localparity')} has these",
        )
        return
    try:
        policy = parse_policy(files["policy.toml"].decode(), "policy.toml")
        again = recompute(plain, policy._replace(policy=type(policy.policy)(**_lists(record["policy"]))))
    except _UNFIT as error:
        yield _unfit(error)
        return
    if plain["localparity"] != __version__:
        mine = _numbers_in(_parse(again["audit.json"], "audit.json"))
        found = next(differences(_numbers_in(plain), mine), None)
        yield _check(found is None, "every number, recomputed" + (f": {found}" if found else ""))
        again = {name: _of_version(content, plain["localparity"]) for name, content in again.items()}
        if any(
            difference(content.decode(), files[name].decode(errors="replace"))
            for name, content in again.items()
        ):
            yield _in_words_of(plain["localparity"], Check("differs", "the words, made again from the data"))
            return
    for name in sorted({*again, *files} - {CHECKSUMS}):
        if name not in files or name not in again:
            yield Check(
                "differs", f"{name}: {'the bundle has none' if name in again else 'the data give none'}"
            )
            continue
        text, mine_text = files[name].decode(errors="replace"), again[name].decode()
        found = difference(mine_text, text)
        if found and name.endswith(".json"):
            found = next(differences(_parse(files[name], name), _parse(again[name], name)), found)
        yield _check(found is None, f"{name}, made again from the data" + (f": {found}" if found else ""))


def _of_version(content: bytes, version: str) -> bytes:
    """A file as another version would name itself in it."""
    return re.sub(rb'("localparity": ?)"[^"]*"', rb"\g<1>" + json.dumps(version).encode(), content, count=1)


def _numbers_in(plain: Any) -> Any:
    """The same without words."""
    if isinstance(plain, dict):
        kept = {name: _numbers_in(value) for name, value in plain.items() if name != "provenance"}
        return {name: value for name, value in kept.items() if not isinstance(value, str)}
    if isinstance(plain, list):
        return [_numbers_in(value) for value in plain if not isinstance(value, str)]
    return plain


_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


def difference(mine: str, theirs: str) -> str | None:
    """The first line in which a text differs from what it should be, but for how numbers are rounded."""
    if mine == theirs or _alike(mine, theirs):
        return None
    lines = mine.split("\n"), theirs.split("\n")
    for number, (one, other) in enumerate(zip(*lines, strict=False), 1):
        if one != other and not _alike(one, other):
            return f"line {number} has {other.strip()[:60]!r}, not {one.strip()[:60]!r}"
    return f"it has {len(lines[1]):,} lines, not {len(lines[0]):,}"


def _alike(mine: str, theirs: str) -> bool:
    if _NUMBER.sub("0", mine) != _NUMBER.sub("0", theirs):
        return False
    pairs = zip(_NUMBER.findall(mine), _NUMBER.findall(theirs), strict=True)
    # Whole numbers, and hashes, are the same or not; others may be rounded.
    return all(a == b or (("." in a or "e" in a) and _close(float(a), float(b))) for a, b in pairs)


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=1e-14)


def differences(theirs: Any, mine: Any, place: str = "") -> Iterator[str]:
    """Where two JSON values differ, but for how numbers are rounded."""
    if isinstance(theirs, dict) and isinstance(mine, dict):
        for name in dict.fromkeys([*mine, *theirs]):
            if name not in theirs or name not in mine:
                yield f"{place}/{name} is {'missing' if name not in theirs else 'not expected'}"
            else:
                yield from differences(theirs[name], mine[name], f"{place}/{name}")
    elif isinstance(theirs, list) and isinstance(mine, list) and len(theirs) == len(mine):
        for number, (one, other) in enumerate(zip(theirs, mine, strict=True)):
            yield from differences(one, other, f"{place}/{number}")
    elif theirs != mine or type(theirs) is bool is not type(mine) is bool:
        both = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (theirs, mine))
        if not both or not _close(theirs, mine):
            yield f"{place} is {theirs!r:.60}, not {mine!r:.60}"
