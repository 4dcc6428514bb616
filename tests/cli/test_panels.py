"""Help on a command with many options shows those that people use first."""

from __future__ import annotations

import re

import typer

from localparity.cli._app import app
from typed_commands import run


def test_an_audit_has_twelve_common_options_and_the_rest_is_advanced() -> None:
    shown = run("audit", "--help", COLUMNS="200").stdout
    panels = dict(re.findall(r"─ ([A-Z][a-z ]+) ─(.*?)╰", shown, re.DOTALL))
    assert list(panels) == ["Arguments", "Options", "Advanced"]
    common = re.findall(r"│ (--[a-z-]+)", panels["Options"])
    assert len(common) == 12 + 1
    assert {"--score", "--group", "--label", "--max-mcdp", "--report", "--json", "--help"} <= set(common)
    command = typer.main.get_command(app).commands["audit"]  # type: ignore[attr-defined]
    options = [param.opts[0] for param in command.params if param.param_type_name == "option"]
    assert len(options) > 30
    assert all(f"{option} " in shown for option in options)


def test_few_options_have_one_panel() -> None:
    shown = run("predict", "--help", COLUMNS="200").stdout
    assert re.findall(r"─ ([A-Z][a-z ]+) ─", shown) == ["Arguments", "Options"]
