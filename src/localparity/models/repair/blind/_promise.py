"""What a group-blind repair promises, and the messages for a bound out of reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from localparity._types import FloatArray
from localparity.counts._comparison import group_text
from localparity.models._sequence import promise_for_population
from localparity.models.repair._promise import AMONG, round_up
from localparity.models.repair.blind._features import BlindRows, least_sizes

if TYPE_CHECKING:
    from localparity.models.repair.blind._repair import GroupBlindRepair


def promise_sentence(repair: GroupBlindRepair, fitted: FloatArray, tested: FloatArray | None) -> str:
    """Return what holds after a repair and for whom: `fitted` and `tested` are the weights of people."""
    what = f"MCDP({repair.epsilon:g}){AMONG[repair.criterion]} is at most {repair.max_mcdp:.4g}"
    if repair.confidence is None or tested is None:
        sentence = f"{what} among the {fitted.size:,} people fitted on; nothing is promised for others "
        sentence += "without a confidence."
    else:
        sentence = promise_for_population(what, repair.confidence, tested)
    if repair.left_out_:
        names = ", ".join(map(group_text, repair.left_out_))
        sentence += f" Groups of fewer than {repair.min_group_size} people take no part: {names}."
    return sentence


def out_of_reach(repair: GroupBlindRepair, least: float) -> ValueError:
    """Return the error for a bound that no repair of the people fitted on meets."""
    return ValueError(
        f"max_mcdp={repair.max_mcdp:g} is out of reach: group-blind scores leave at least {least:.4f} among "
        f"the people fitted on; use max_mcdp >= {round_up(least):g}, more rows, or a group-aware "
        "repair, which needs the group at prediction"
    )


def untested(repair: GroupBlindRepair, upper: float, tested: BlindRows) -> ValueError:
    """Return the error for a bound that the people held out do not support."""
    sizes = least_sizes(tested.groups, tested.labels, repair.criterion, len(repair.groups_))
    named = zip(repair.groups_, sizes, strict=True)
    shown = ", ".join(f"{size:,}" for group, size in named if group not in repair.left_out_)
    return ValueError(
        f"max_mcdp={repair.max_mcdp:g} is out of reach: with confidence={repair.confidence:g}, the strongest "
        f"repair is only known to be within {upper:.4f} from held-out groups of {shown}"
        f"{AMONG[repair.criterion]}; use max_mcdp >= {round_up(upper):g}, or more rows"
    )
