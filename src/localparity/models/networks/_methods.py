"""The methods by their names."""

from __future__ import annotations

from localparity._validation import as_choice
from localparity.models.networks._advdebias import AdvDebias
from localparity.models.networks._dralign import DRAlign
from localparity.models.networks._erm import ERM
from localparity.models.networks._fairmixup import FairMixup
from localparity.models.networks._loss_methods import DiffABCC, DiffDP, DiffMCDP
from localparity.models.networks._method import Method, MethodOptions

METHODS: dict[str, type[Method]] = {
    method.name: method for method in (ERM, AdvDebias, DiffDP, FairMixup, DRAlign, DiffABCC, DiffMCDP)
}


def make_method(name: str, strength: float, n_groups: int, options: MethodOptions) -> Method:
    """The method with this name."""
    return METHODS[as_choice(name, "method", METHODS)](strength, n_groups, options)
