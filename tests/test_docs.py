"""Descriptions of parameters that functions share."""

from __future__ import annotations

import pytest

from localparity._docs import documented


def test_what_a_docstring_says_itself_is_kept_and_the_rest_is_added_in_order() -> None:
    def measure(y_score: object, epsilon: float, k: int, compare: str, **options: object) -> None:
        """Measure.

        Parameters
        ----------
        epsilon, k : number
            Of this function alone,
            on two lines.
        **options
            More.

        Returns
        -------
        None
            Nothing.
        """

    doc = documented(measure).__doc__
    assert doc is not None
    assert doc.splitlines()[2:] == [
        "Parameters",
        "----------",
        "y_score : array-like",
        "    Scores inside `score_range`.",
        "epsilon, k : number",
        "    Of this function alone,",
        "    on two lines.",
        "compare : str",
        '    "between_groups" takes the worst pair, "to_overall" compares each group with everyone.',
        "**options",
        "    More.",
        "",
        "Returns",
        "-------",
        "None",
        "    Nothing.",
    ]


def test_a_section_is_made_where_there_is_none() -> None:
    class Drawing:
        def draw(self, ax: object = None) -> None:
            """Draw.

            Examples
            --------
            None.
            """

        def show(self, ax: object) -> None:
            """Show."""

    entry = "Parameters\n----------\nax : matplotlib.axes.Axes, optional\n    Where to draw.\n"
    assert documented(Drawing.draw).__doc__ == f"Draw.\n\n{entry}\nExamples\n--------\nNone.\n"
    needed = entry.replace(", optional", "")
    assert documented(Drawing.show).__doc__ == f"Show.\n\n{needed}"


def test_a_function_without_a_docstring_stays_without() -> None:
    def silent(y_score: object) -> None: ...

    assert documented(silent).__doc__ is None


def test_a_parameter_that_nobody_describes_is_an_error() -> None:
    def strange(colour: str) -> str:
        """Do something."""
        return colour

    with pytest.raises(KeyError, match="colour"):
        documented(strange)
