"""The page's charts, in Vega-Lite.

Colours are names of the page's style sheet, so that light, dark and print each show their own; the data comes
from the page's script, which moves it with the sliders.
"""

from __future__ import annotations

from typing import Any

from localparity._validation import require

_STEPS = "step-after"
_PADDING = {"left": 5, "right": 14, "top": 5, "bottom": 5}
_FEW_TICKS = {"tickCount": 10, "labelFlush": False, "labelOverlap": True, "labelSeparation": 6}


def chart_specs() -> dict[str, dict[str, Any]]:
    """The specifications of all charts by the name of the place where they stand."""
    alt = require("altair", extra="report")
    return {"cdfs": _cdfs(alt), "gap": _gap(alt), "profiles": _profiles(alt)}


def _cdfs(alt: Any) -> dict[str, Any]:
    curve = alt.Chart(alt.NamedData("curve")).encode(x=_score_axis(alt, "x"))
    share = alt.Axis(format="%", title="share at or below", minExtent=44)
    first = alt.Y("a:Q", axis=share, scale=alt.Scale(domain=[0, 1]))
    return _finish(
        alt,
        [
            *_marks_of_place(alt),
            curve.mark_area(interpolate=_STEPS, color="var(--between)").encode(y=first, y2="b:Q"),
            curve.mark_line(interpolate=_STEPS, color="var(--first)", strokeWidth=2).encode(y=first),
            curve.mark_line(
                interpolate=_STEPS, color="var(--second)", strokeWidth=2, strokeDash=[6, 3]
            ).encode(y="b:Q"),
        ],
        height=240,
    )


def _gap(alt: Any) -> dict[str, Any]:
    curve = alt.Chart(alt.NamedData("curve")).encode(x=_score_axis(alt, "x"))
    points = alt.Y("gap:Q", axis=alt.Axis(format="+.0%", title="gap", minExtent=44))
    level = alt.Chart(alt.NamedData("level")).mark_rule(color="var(--window-edge)", strokeDash=[2, 3])
    return _finish(
        alt,
        [
            *_marks_of_place(alt),
            curve.mark_area(interpolate=_STEPS, color="var(--band)").encode(y="low:Q", y2="high:Q"),
            alt.Chart(alt.NamedData("zero")).mark_rule(color="var(--axis)").encode(y="y:Q"),
            level.encode(y="y:Q"),
            curve.mark_line(interpolate=_STEPS, color="var(--ink)", strokeWidth=1.5).encode(y=points),
        ],
        height=200,
    )


def _profiles(alt: Any) -> dict[str, Any]:
    steps = alt.Chart(alt.NamedData("profiles"))
    found = alt.Chart(alt.NamedData("findings")).encode(x="epsilon:Q", color=_model_colour(alt))
    at = alt.X("epsilon:Q", axis=alt.Axis(title="epsilon, the half-width of the window", **_FEW_TICKS))
    value = alt.Y(
        "mcdp:Q", axis=alt.Axis(format="%", title="MCDP", minExtent=44), scale=alt.Scale(domainMin=0)
    )
    dashes = alt.StrokeDash("model:N", legend=None, sort=None)
    return _finish(
        alt,
        [
            alt.Chart(alt.NamedData("at_epsilon"))
            .mark_rule(color="var(--window-edge)")
            .encode(x="epsilon:Q"),
            steps.mark_line(interpolate=_STEPS).encode(
                x=at, y=value, color=_model_colour(alt), strokeDash=dashes
            ),
            found.mark_rule(strokeWidth=1.5).encode(y="low:Q", y2="high:Q"),
            found.mark_point(filled=True, size=45, opacity=1).encode(y="mcdp:Q"),
            found.mark_point(shape="stroke", size=160, strokeWidth=2.5).encode(
                y="parity:Q", color=alt.value("var(--muted)")
            ),
        ],
        height=220,
    )


def _score_axis(alt: Any, field: str) -> Any:
    scale = alt.Scale(zero=False, nice=False)
    return alt.X(f"{field}:Q", scale=scale, axis=alt.Axis(title="threshold", grid=False, **_FEW_TICKS))


def _model_colour(alt: Any) -> Any:
    names = [f"var(--model-{number})" for number in range(6)]
    return alt.Color("model:N", legend=None, sort=None, scale=alt.Scale(range=names))


def _marks_of_place(alt: Any) -> list[Any]:
    """The worst window, the decision threshold, the pointer, and the ends of the score range."""
    window = alt.Chart(alt.NamedData("window")).mark_rect(color="var(--window)", stroke="var(--window-edge)")
    threshold = alt.Chart(alt.NamedData("threshold")).mark_rule(color="var(--ink)", strokeDash=[4, 3])
    pointer = alt.Chart(alt.NamedData("pointer")).mark_rule(color="var(--muted)")
    ends = alt.Chart(alt.NamedData("range")).mark_point(opacity=0)
    return [
        ends.encode(x=_score_axis(alt, "x")),
        window.encode(x=_score_axis(alt, "low"), x2="high:Q"),
        threshold.encode(x=_score_axis(alt, "x")),
        pointer.encode(x=_score_axis(alt, "x")),
    ]


def _finish(alt: Any, layers: list[Any], *, height: int) -> dict[str, Any]:
    text = {"labelColor": "var(--ink)", "titleColor": "var(--ink)", "titleFontWeight": "normal"}
    lines = {"gridColor": "var(--grid)", "domainColor": "var(--axis)", "tickColor": "var(--axis)"}
    sizes = {"labelFontSize": 12, "titleFontSize": 13, "labelFont": "inherit", "titleFont": "inherit"}
    chart = alt.layer(*layers).properties(width="container", height=height, padding=_PADDING)
    chart = chart.configure(background="transparent", aria=False, axis={**text, **lines, **sizes})
    chart = chart.configure_mark(aria=False).configure_view(stroke=None)
    spec: dict[str, Any] = chart.to_dict()
    return spec
