"""JUnit XML: what a parser of it reads is what the audit decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import junitparser
import numpy as np
import pytest

import localparity as lp
from localparity.auditing._document import Document
from localparity.report._bundle import to_junit
from typed_commands import run

OPTIONS: dict[str, Any] = {"n_resamples": 50, "random_state": 0}


@pytest.fixture(scope="module")
def audit() -> lp.Audit:
    census = lp.datasets.make_census(2000, random_state=0)
    return lp.audit(None, census.score, sensitive_features=census.sensitive_features, **OPTIONS)


def parsed(text: str) -> junitparser.JUnitXml:
    return junitparser.JUnitXml.fromstring(text.encode())


@pytest.mark.parametrize("decide_by", ["estimate", "upper", "lower"])
@pytest.mark.parametrize("max_mcdp", [0.0, 0.25, 0.3, 0.35, 1.0])
def test_a_case_fails_where_the_audit_does(audit: lp.Audit, max_mcdp: float, decide_by: Any) -> None:
    found = parsed(
        to_junit(Document(audits={"a": audit, "b": audit}, max_mcdp=max_mcdp, decide_by=decide_by))
    )
    passes = audit.passes(max_mcdp, decide_by=decide_by)
    (suite,) = found
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (2, 0 if passes else 2, 0, 0)
    for case, name in zip(suite, "ab", strict=True):
        assert (case.classname, case.is_passed) == (name, passes)
        (verdict,) = case._elem.iter("property")
        assert verdict.attrib == {"name": "verdict", "value": audit.verdict(max_mcdp)}
        assert case.name.endswith(f"MCDP(0) is at most {100 * max_mcdp:g} points")


def test_a_failure_says_what_was_measured_where_and_how_sure(audit: lp.Audit) -> None:
    (suite,) = parsed(to_junit(Document(audits={"scores.csv": audit}, max_mcdp=0.1)))
    (case,) = suite
    (failure,) = case.result
    answer = Document(audits={"scores.csv": audit}, max_mcdp=0.1).answer("scores.csv")
    assert failure.message == answer.verdict
    assert failure.message.startswith("Above the bound of 10 points: Male (")
    for sentence in (answer.verdict or "", answer.headline, answer.rates, answer.sure):
        assert sentence in failure.text
    (suite,) = parsed(to_junit(Document(audits={"scores.csv": audit}, max_mcdp=0.9)))
    assert "Within the bound of 90 points" in next(iter(suite)).system_out


@pytest.mark.parametrize(
    "name", ["</testsuite><x a='", 'a"b&c', "\x00\x1b[2J\ufffe\uffff\ud800", "]]>", "é✓"]
)
def test_a_name_is_text_whatever_it_is(name: str) -> None:
    groups = np.repeat([name, "b"], 50)
    found = lp.audit(None, np.random.default_rng(0).random(100), sensitive_features=groups, n_resamples=0)
    root = ElementTree.fromstring(to_junit(Document(audits={name: found}, title=name, max_mcdp=0.0)).encode())
    tags = ["testsuites", "testsuite", "testcase", "properties", "property", "failure"]
    assert [element.tag for element in root.iter()] == tags


def test_the_command_prints_it(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("p,sex\n" + "".join(f"{i / 100},{'fm'[i > 50]}\n" for i in range(101)))
    words = ("audit", file, "--score", "p", "--group", "sex", "--resamples", "0", "--format", "junit")
    for bound, code in (("0.5", 1), ("1", 0)):
        done = run(*words, "--max-mcdp", bound)
        assert done.returncode == code
        (suite,) = parsed(done.stdout)
        assert suite.failures == code
    assert "--max-mcdp" in run(*words).stderr
    refused = run(*words, "--max-mcdp", "1", "--json")
    assert (refused.returncode, "must be json with --json, got junit" in refused.stderr) == (2, True)
