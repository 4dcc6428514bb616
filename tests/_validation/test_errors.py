"""Errors that know what is wrong, and say it in the caller's words."""

from __future__ import annotations

import pickle
import warnings

import pytest

from localparity._validation import (
    FileColumn,
    InputError,
    InputWarning,
    MissingValueError,
    OutputExistsError,
    as_count,
    as_groups,
    as_scores,
    setting,
)

OPTIONS = {
    "confidence": "--confidence",
    "force": "--force",
    "group": "--group",
    "min_group_size": "--min-group-size",
    "n_resamples": "--resamples",
    "score_range": "--score-range",
    "small_groups": "--small-groups",
}


def test_an_error_is_data() -> None:
    with pytest.raises(InputError) as raised:
        as_scores([0.1, 7.0], (0.0, 1.0))
    error = raised.value
    assert (error.argument, error.column, error.row) == ("y_score", "", 1)
    assert "got 7.0 at row 1" in error.reason
    with pytest.raises(MissingValueError) as raised:
        as_groups(["f", None, "m"], 3, FileColumn("sex", 11))
    assert (raised.value.argument, raised.value.column, raised.value.row) == ("", "sex", 1)
    assert str(raised.value) == "column 'sex' has no value at data row 12"


@pytest.mark.parametrize(
    ("error", "in_python", "in_command"),
    [
        (
            InputError(f"must be >= 19 with {setting(confidence=0.95)}, got 5", argument="n_resamples"),
            "n_resamples must be >= 19 with confidence=0.95, got 5",
            "--resamples must be >= 19 with --confidence 0.95, got 5",
        ),
        (
            InputError(f"there are many; use {setting('min_group_size')} and {setting(small_groups='drop')}"),
            "there are many; use min_group_size and small_groups='drop'",
            "there are many; use --min-group-size and --small-groups drop",
        ),
        (
            InputError(f"{setting(criterion='equal_opportunity')} needs labels"),
            "criterion='equal_opportunity' needs labels",
            "criterion='equal_opportunity' needs labels",
        ),
        (
            InputError(f"has 7, outside {setting('score_range')} (0, 1)", column="p", file="scores.csv"),
            "column 'p' of scores.csv has 7, outside score_range (0, 1)",
            "column 'p' of scores.csv has 7, outside --score-range (0, 1)",
        ),
        (
            OutputExistsError("page.html"),
            "page.html already exists; pass force=True to overwrite",
            "page.html already exists; pass --force to overwrite",
        ),
        (InputWarning(f"is {setting('score_range')} right?"), "is score_range right?", "is --score-range right?"),
        # what people named stays
        (InputError("is damaged", file="group"), "group is damaged", "group is damaged"),
        (InputError("'group' and score_range"), "'group' and score_range", "'group' and score_range"),
    ],
)  # fmt: skip
def test_arguments_are_called_by_their_options(
    error: InputError | OutputExistsError | InputWarning, in_python: str, in_command: str
) -> None:
    assert str(error) == in_python
    assert error.in_words(OPTIONS) == in_command


def test_a_process_hands_an_error_over_whole() -> None:
    with pytest.raises(InputError) as raised:
        as_count(0, "n_resamples")
    for error in (raised.value, OutputExistsError("x"), MissingValueError("is", column="p", file="f", row=2)):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), vars(again), str(again)) == (type(error), vars(error), str(error))
        assert again.in_words(OPTIONS) == error.in_words(OPTIONS)


def test_errors_are_the_kinds_that_people_catch() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(OutputExistsError, FileExistsError)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        warnings.warn(InputWarning("odd"), stacklevel=1)
    assert str(caught[0].message) == "odd"


def test_a_message_is_not_as_long_as_what_it_quotes() -> None:
    message = str(InputError(f"must be numbers, got {'9' * 10_000}", "scores"))
    assert message.startswith("scores must be numbers, got 999")
    assert message.endswith("9... (10,028 characters)")
    assert len(message) < 2100
