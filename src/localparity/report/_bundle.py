"""An audit to file: the page, the JSON, the Markdown, the command and checksums in one zip file."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack
from xml.etree import ElementTree

from localparity._io._files import sha256_of, write_new
from localparity._io._sealed import Files
from localparity._text import points, visible
from localparity._validation import InputError
from localparity.auditing._answer import Answer
from localparity.auditing._document import Document, DocumentKeywords
from localparity.counts._disclosure import DISCLOSURE_LIMIT, few_people, in_steps, rows_of
from localparity.counts._score_counts import strata_of
from localparity.models._card import ModelCard, card_files
from localparity.report._markdown import to_markdown
from localparity.report.page._page import render_page

if TYPE_CHECKING:
    from localparity.auditing._audit import Audit


CHECKSUMS = "SHA256SUMS"
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def write_bundle(
    path: str | PathLike[str],
    audits: Mapping[str, Audit],
    *,
    model: str | PathLike[str] | None = None,
    force: bool = False,
    **options: Unpack[DocumentKeywords],
) -> None:
    """Write the audits of one model or several as a zip file to sign and to file.

    It has the page (``report.html``), the JSON (``audit.json``), the Markdown (``audit.md``), the command or
    call (``command.txt``), what checking it takes (``record.json``: every option, and counts in cells of at
    least ten people), the policy (``policy.toml``), the card of a model, and ``SHA256SUMS`` over all of them.
    ``sha256sum -c`` checks these, and ``localparity verify`` everything. The same audits give the same bytes.

    Parameters
    ----------
    path : path
        Where to write it. The file is written whole or not at all.
    audits : mapping
        The audit of each model, by the model's name.
    model : path, optional
        The folder of the saved model that made the scores, for its model card.
    force : bool
        Overwrite the file if it exists.
    **options
        ``title``, ``paired``, and the others of `Audit.to_json`.

    Examples
    --------
    >>> import pathlib, tempfile, zipfile
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> found = lp.audit(None, census.score, sensitive_features=census.sensitive_features, random_state=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "audit.zip"
    >>> lp.report.write_bundle(path, {"census": found}, max_mcdp=0.1)
    >>> zipfile.ZipFile(path).namelist()
    ['report.html', 'audit.json', 'audit.md', 'command.txt', 'record.json', 'SHA256SUMS']
    """
    folder = None if model is None else Path(model)
    write_new(Path(path), bundle(Document(audits=audits, **options), folder), force=force)


def bundle(document: Document, model: Path | None = None, *, page: str | None = None) -> bytes:
    """The bytes of the zip file; the page may be there already."""
    return packed({"report.html": (page or render_page(document)).encode(), **texts_of(document, model)})


def texts_of(document: Document, model: Path | None = None) -> dict[str, bytes]:
    """The files of a bundle without the page."""
    calls = [audit.provenance.call for audit in document.audits.values() if audit.provenance is not None]
    return {
        "audit.json": f"{document.to_json()}\n".encode(),
        "audit.md": to_markdown(document).encode(),
        "command.txt": "".join(f"{call}\n" for call in dict.fromkeys(calls)).encode(),
        "record.json": f"{json.dumps(record_of(document), default=str, ensure_ascii=False)}\n".encode(),
        **({} if document.policy is None else {"policy.toml": document.policy.text.encode()}),
        **({} if model is None else _cards(model)),
    }


def packed(contents: Mapping[str, bytes]) -> bytes:
    """Files and their checksums as a zip file; the same files give the same bytes."""
    sums = "".join(f"{sha256_of(content)}  {name}\n" for name, content in contents.items())
    buffer = io.BytesIO()
    # Stored, since what is compressed depends on the version of zlib.
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in {**contents, CHECKSUMS: sums.encode()}.items():
            entry = zipfile.ZipInfo(name, _NO_TIME)
            entry.create_system, entry.external_attr = 3, 0o100644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def _cards(model: Path) -> Files:
    """The model card, checked and written anew; a model needs none."""
    try:
        return card_files(ModelCard.read(model))
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return {}
        raise


# What checking a bundle takes: every option, and the people of each group in cells of scores.


METHODS = 1
"""Raised by a version whose numbers for the same scores and seed are others; `CHANGES` says why."""
CHANGES: dict[int, str] = {}
"""What each of these versions of the methods changed."""
RECORD, RECORD_VERSION = "localparity-record", 1
_MOST_STEPS = 200


def record_of(document: Document) -> dict[str, Any]:
    """The options with all defaults, the checksum of the policy, and the counts of each audit."""
    policy = document.policy
    return {
        "format": RECORD,
        "version": RECORD_VERSION,
        "methods": METHODS,
        "policy_sha256": None if policy is None else policy.sha256,
        "policy": None if policy is None else asdict(policy.policy),
        "counts": {name: _counts(document, name) for name in document.audits},
    }


def _counts(document: Document, name: str) -> dict[str, Any] | None:
    """The people of each group in the steps of the page, joined where these are many.

    None where a group is too small, or where the counts are not exact.
    """
    audit, limit = document.audits[name], max(document.min_group_size, DISCLOSURE_LIMIT)
    if audit.counts.rank_error > 0.0 or few_people(audit.counts, audit.comparison, limit):
        return None
    exact, steps, error = strata_of(audit.counts, audit.comparison), [], 0.0
    for label, stratum in strata_of(document.shown_counts(name), audit.comparison).items():
        for group, atoms in stratum.items():
            step = in_steps(atoms, max(rows_of(audit.counts, limit), atoms.size // _MOST_STEPS))
            error = max(error, exact[label][group].distance(step))
            numbers = {"scores": step.scores, "rows": step.rows, "weights": step.weights}
            steps.append(
                {"group": group, "label": label, **{name: row.tolist() for name, row in numbers.items()}}
            )
    return {"rank_error": error, "groups": steps}


# A document as JUnit XML, for a pipeline: one test case for each bound that is decided.


_NOT_XML = re.compile("[\ufffe\uffff]")
"""Characters that XML 1.0 cannot have, apart from the control characters that `visible` writes as codes."""


def to_junit(document: Document) -> str:
    """The document, which must have a bound, as a test suite."""
    answers = {name: document.answer(name) for name in document.audits}
    failures = sum(answer.bound is not None and not answer.bound.passes for answer in answers.values())
    counted = {"tests": str(len(answers)), "failures": str(failures), "errors": "0"}
    suites = ElementTree.Element("testsuites", counted)
    suite = ElementTree.SubElement(
        suites, "testsuite", {"name": _text(document.title), **counted, "skipped": "0"}
    )
    for name, answer in answers.items():
        _add_case(suite, name, answer)
    ElementTree.indent(suites)
    text: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text.decode() + "\n"


def _add_case(suite: ElementTree.Element, name: str, answer: Answer) -> None:
    """Add the test case of a bound: a failure, or what was found as the output of the test."""
    bound = answer.bound
    assert bound is not None
    test = f"{bound.compared} is at most {points(bound.max_mcdp)}"
    case = ElementTree.SubElement(suite, "testcase", {"classname": _text(name), "name": test})
    properties = ElementTree.SubElement(case, "properties")
    ElementTree.SubElement(properties, "property", {"name": "verdict", "value": bound.verdict})
    lines = "\n".join(map(_text, answer.bound_lines))
    if bound.passes:
        ElementTree.SubElement(case, "system-out").text = lines
    else:
        failure = {"message": _text(answer.verdict or ""), "type": "AssertionError"}
        ElementTree.SubElement(case, "failure", failure).text = lines


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", visible(text))
