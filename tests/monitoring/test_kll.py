"""Bytes that only say that they are a sketch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from localparity.monitoring._sketch import check_kll, kept_scores

kll = pytest.importorskip("datasketches").kll_doubles_sketch


def sketched(rows: int, k: int = 8) -> bytes:
    sketch = kll(k)
    sketch.update(np.linspace(0.0, 1.0, rows))
    return bytes(sketch.serialize())


@pytest.mark.parametrize("k", [8, 200, 2048])
@pytest.mark.parametrize("rows", [1, 2, 7, 100, 10_000])
def test_every_sketch_passes(rows: int, k: int) -> None:
    both = kll(k)
    for _ in range(2):
        check_kll(sketched(rows, k), k, (0.0, 1.0))
        both.merge(kll.deserialize(sketched(rows, k)))
    check_kll(bytes(both.serialize()), k, (0.0, 1.0))


def changed(content: bytes, at: int, by: bytes) -> bytes:
    return content[:at] + by + content[at + len(by) :]


MANY = sketched(400)


# Named by their number: a sketch draws lots, so its bytes are not the same in every process.
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "16 bytes, got 0"),
        (MANY[:18], "20 bytes, got 18"),
        (changed(MANY, 2, b"\x07"), "must be a KLL sketch .* k = 8"),
        (changed(MANY, 4, b"\x09"), "must be a KLL sketch .* k = 8"),
        (changed(MANY, 3, b"\x01"), "must be a KLL sketch .* k = 8"),
        (changed(MANY, 8, b"\x91"), "401 rows, got 400"),
        (changed(MANY, 16, b"\x09"), "400 rows, got 400"),
        (changed(MANY, 24, b"\xff\xff\xff\xff"), "400 rows, got"),
        (changed(MANY, len(MANY) - 8, np.float64(2.0).tobytes()), r"scores .*score_range \(0.0, 1.0\)"),
        (changed(sketched(1), 8, np.float64(np.nan).tobytes()), "scores .*score_range"),
    ],
    ids=itertools.count(),
)
def test_what_is_none_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_kll(content, 8, (0.0, 1.0))


def test_what_a_merged_sketch_kept_stands_for_all_of_its_rows() -> None:
    """Also where its lowest level is empty, of which the library's iterator says that all weigh 1."""
    rng, empty = np.random.default_rng(0), 0
    for _ in range(300):
        both, other = kll(8), kll(8)
        both.update(rng.random(int(rng.integers(100, 2000))))
        other.update(rng.random(int(rng.integers(20, 400))))
        both.merge(other)
        scores, rows = kept_scores(bytes(both.serialize()), 8)
        assert rows.sum() == both.n
        empty += int(rows.min()) > 1
        at = np.unique(scores)
        shares = np.array([rows[scores <= score].sum() for score in at]) / both.n
        np.testing.assert_allclose(shares, both.get_cdf(at, True)[:-1], rtol=0, atol=1e-12)
    assert empty > 0


def test_levels_that_do_not_add_up_to_the_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="401 rows, got 400"):
        kept_scores(changed(MANY, 8, b"\x91"), 8)
