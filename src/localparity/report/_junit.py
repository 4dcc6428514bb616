"""A document as JUnit XML, for a pipeline: one test case for each bound that is decided."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree

from localparity._text import visible
from localparity.audit._answers import BoundResult, bound_lines
from localparity.audit._document import Document
from localparity.metrics._window import percent

_NOT_XML = re.compile("[\ufffe\uffff]")
"""What XML 1.0 cannot have, beside the control characters that `visible` writes as codes."""


def to_junit(document: Document) -> str:
    """The document, which must have a bound, as a test suite.

    Examples
    --------
    >>> import localparity as lp
    >>> census = lp.datasets.make_census(2000, random_state=0)
    >>> found = lp.audit(None, census.score, sensitive_features=census.sensitive_features, random_state=0)
    >>> text = to_junit(Document(audits={"census.csv": found}, max_mcdp=0.1))
    >>> ElementTree.fromstring(text.encode()).find("testsuite/testcase").attrib
    {'classname': 'census.csv', 'name': 'MCDP(0) is at most 10.00%'}
    """
    answers = {name: document.answers(name).bound for name in document.audits}
    bounds = {name: bound for name, bound in answers.items() if bound is not None}
    failures = sum(not bound.within for bound in bounds.values())
    counted = {"tests": str(len(bounds)), "failures": str(failures), "errors": "0"}
    suites = ElementTree.Element("testsuites", counted)
    suite = ElementTree.SubElement(
        suites, "testsuite", {"name": _text(document.title), **counted, "skipped": "0"}
    )
    for name, bound in bounds.items():
        _add_case(suite, name, bound, bound_lines(document.audits[name], bound))
    ElementTree.indent(suites)
    text: bytes = ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text.decode() + "\n"


def _add_case(suite: ElementTree.Element, name: str, bound: BoundResult, lines: Iterable[str]) -> None:
    """Add the test case of a bound: a failure, or what was found as the output of the test."""
    asked = f"{bound.compared} is at most {percent(bound.max_mcdp)}"
    case = ElementTree.SubElement(suite, "testcase", {"classname": _text(name), "name": asked})
    told = "\n".join(map(_text, lines))
    if bound.within:
        ElementTree.SubElement(case, "system-out").text = told
    else:
        failure = {"message": _text(bound.sentence), "type": "AssertionError"}
        ElementTree.SubElement(case, "failure", failure).text = told


def _text(text: str) -> str:
    return _NOT_XML.sub("\ufffd", visible(text))
