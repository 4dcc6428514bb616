"""`localparity verify`: a bundle in, whether it agrees with itself and with the data out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from localparity.auditing._audit import Audit
from localparity.auditing._policy import PolicyFile
from localparity.auditing._provenance import SourceFile
from localparity.cli._commands import print_json, print_line
from localparity.cli.audit import AuditAsked, document_of
from localparity.report._bundle import texts_of
from localparity.report._verify import read_bundle, verify_data, verify_files
from localparity.report.page._page import render_page


def verify(
    *,
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="The zip that audit --out wrote.")],
    data: Annotated[
        list[str] | None, typer.Option(help="The scores that were audited; repeat it for several files.")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="The folder of the model that made the scores.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Check that the files of a bundle agree, and, with the data, recompute all that they say.

    Exit codes: 0 when everything that could be checked agrees, 1 when something differs, 2 for bad usage or
    input, and where this version cannot make the numbers again.
    """
    files = read_bundle(bundle)
    checks = list(verify_files(files))
    if data:
        again = list(verify_data(files, lambda plain, policy: _recompute(plain, policy, data, model)))
        checks = [check for check in checks if check.result != "not checked"] + again
    checks = [replace(check, text=_shortened(check.text)) for check in checks]
    refused = sum(check.result == "cannot be told" for check in checks)
    differ = sum(check.result == "differs" for check in checks)
    if json:
        print_json(
            {"bundle": str(bundle), "differences": differ, "checks": [asdict(check) for check in checks]}
        )
    else:
        for check in checks:
            print_line(f"{check.result}: {check.text}")
        if differ:
            print_line(f"no: {differ} of {len(checks)} checks found a difference")
        elif refused:
            print_line(f"cannot be told: {refused} of {len(checks)} checks could not be made")
        elif data:
            print_line("yes: the bundle is what the data gives")
        else:
            print_line("yes: the bundle agrees with itself. --data FILE recomputes its numbers")
    if differ or refused:
        raise typer.Exit(1 if differ else 2)


_LONGEST = 800


def _shortened(text: str) -> str:
    """A text that may quote what anybody wrote into a bundle."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _recompute(
    plain: Mapping[str, Any], policy: PolicyFile, data: list[str], model: Path | None
) -> dict[str, bytes]:
    """The files of the bundle from the data, as they were called, dated and named then."""
    audits = plain["audits"]
    if len(data) != len(audits):
        raise typer.BadParameter(f"must be {len(audits)} files, got {len(data)}", param_hint="--data")
    asked = replace(AuditAsked(), model=model).following(policy.policy)
    if asked.score is None and model is None:
        raise typer.BadParameter("must be the folder of the model that made the scores", param_hint="--model")
    named = dict(zip((one["name"] for one in audits), data, strict=True))
    options = asked.options
    document = document_of(
        {name: asked.open(file) for name, file in named.items()}, asked, options, call="", policy=policy
    )
    then = {one["name"]: one["provenance"] for one in audits}
    audited = {name: _as_then(audit, then[name]) for name, audit in document.audits.items()}
    document = replace(document, audits=audited)
    return {"report.html": render_page(document).encode(), **texts_of(document, model)}


def _as_then(audit: Audit, then: Mapping[str, Any]) -> Audit:
    """An audit with the call, the time, the versions and the names of files that a bundle has."""
    assert audit.provenance is not None
    sums = [file.sha256 for file in audit.provenance.files]
    names = [file["name"] for file in then["files"]]
    files = tuple(SourceFile(name, known) for name, known in zip(names, sums, strict=False))
    said = {name: then[name] for name in ("call", "date", "version", "python")}
    provenance = replace(audit.provenance, files=files, **said)
    file = None if audit.file is None else replace(audit.file, paths=tuple(map(os.fspath, names)))
    return replace(audit, provenance=provenance, file=file)
