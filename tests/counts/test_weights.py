"""Weights in whole units: exact, and the same in any order."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from localparity import _validation as validation
from localparity.counts._weights import LIMBS, UNIT_BITS, carry, to_floats, to_whole, units_of_rows
from scale_rows import to_units

weights = st.lists(st.floats(validation.LEAST_WEIGHT, validation.MOST_WEIGHT), min_size=1, max_size=30)


@given(weights)
def test_units_are_the_number_up_to_a_unit(drawn: list[float]) -> None:
    for number in drawn:
        units = to_whole(to_units(np.array([number])))
        exact = Fraction(number) * 2**UNIT_BITS
        assert 0 <= exact - units < 1
        if number >= 2.0**-43:
            assert units == exact


@given(weights, st.randoms())
def test_sums_do_not_depend_on_the_order_or_the_parts(drawn: list[float], random: object) -> None:
    units = to_units(np.array(drawn))
    whole = carry(units.sum(axis=1, keepdims=True))
    shuffled = drawn.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    cut = len(drawn) // 2
    parts = [
        carry(to_units(np.array(part)).sum(axis=1, keepdims=True))
        for part in (shuffled[:cut], shuffled[cut:])
    ]
    assert carry(parts[0] + parts[1]).tobytes() == whole.tobytes()
    total = sum(map(Fraction, drawn))
    assert to_floats(whole)[0] == pytest.approx(float(total), rel=1e-12)


@pytest.mark.parametrize("number", [2.0**32, 2.0**64, 2.0**64 + 2.0**40, 2.0**90])
def test_the_topmost_limb_holds_all_that_is_above_the_others(number: float) -> None:
    assert to_whole(to_units(np.array([number]))) == int(number) << UNIT_BITS


@given(st.lists(st.integers(0, 2**45), min_size=1, max_size=8))
def test_rows_are_whole_numbers_of_ones(rows: list[int]) -> None:
    units = units_of_rows(np.array(rows))
    for each in units:  # the weights and the squared weights of rows that weigh 1
        assert [to_whole(each[:, [i]]) for i in range(len(rows))] == [number << UNIT_BITS for number in rows]
        assert to_floats(each).tolist() == rows


@given(st.lists(st.lists(st.integers(0, 2**60), min_size=LIMBS, max_size=LIMBS), min_size=1, max_size=5))
def test_a_number_has_one_form_after_the_carry(limbs: list[list[int]]) -> None:
    units = np.array(limbs).T.copy()
    whole = [sum(limb << (32 * i) for i, limb in enumerate(column)) for column in limbs]
    carried = carry(units)
    assert [to_whole(carried[:, [i]]) for i in range(len(limbs))] == whole
    assert ((carried[:-1] >= 0) & (carried[:-1] < 2**32)).all()
    # Nearly the nearest float, and of greater numbers none that is less.
    floats = to_floats(carried)
    np.testing.assert_allclose(floats, [float(Fraction(each, 2**UNIT_BITS)) for each in whole], rtol=4e-16)
    assert (np.diff(floats[np.argsort(np.array(whole, dtype=object))]) >= 0.0).all()


@pytest.mark.parametrize("weight", [1e-20, 1e10])
def test_a_weight_that_does_not_fit_is_named(weight: float) -> None:
    message = re.escape(f"got {weight:g} at row 1")
    with pytest.raises(ValueError, match=f"sample_weight .*{message}"):
        validation.as_weights([0.0, weight], 2)
