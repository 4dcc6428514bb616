"""The losses: right, smooth, safe and usable in anyone's loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import localparity as lp
from localparity.losses import ABCCLoss, DPLoss, MCDPLoss
from localparity.models.networks._smoothed_gap import contrasts
from training_oracles import scanned_gaps, smoothed_gap

LOSSES = {
    "dp": lambda **options: DPLoss(**options),
    "abcc": lambda **options: ABCCLoss(10.0, **options),
    "exact": lambda **options: MCDPLoss(10.0, **options),
    "window": lambda **options: MCDPLoss(10.0, epsilon=0.05, **options),
    "wide": lambda **options: MCDPLoss(20.0, epsilon=0.4, **options),
    "frozen": lambda **options: MCDPLoss(10.0, search="frozen", threshold=0.3, **options),
    "soft": lambda **options: MCDPLoss(10.0, search="soft", **options),
    "probe": lambda **options: MCDPLoss(10.0, search="probe", **options),
}
SMOOTH = [name for name in LOSSES if name != "probe"]


def batch(seed: int, rows: int = 24, n_groups: int = 2) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(rows, generator=generator, dtype=torch.float64)
    return scores, torch.arange(rows) % n_groups, (torch.arange(rows) // n_groups) % 2


@pytest.mark.parametrize("criterion", ["demographic_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("n_groups", [2, 3])
def test_gradients_in_double_precision(name: str, criterion: str, n_groups: int) -> None:
    loss = LOSSES[name](criterion=criterion)
    weights = torch.linspace(0.5, 2.0, 24, dtype=torch.float64)
    for seed in range(3):
        scores, groups, labels = batch(seed, n_groups=n_groups)
        assert torch.autograd.gradcheck(
            lambda p, g=groups, y=labels: loss(p, g, y, weights), (scores.requires_grad_(),)
        )


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_through_logits(name: str) -> None:
    loss = LOSSES[name](from_logits=True)
    scores, groups, _ = batch(5)
    assert torch.autograd.gradcheck(lambda z: loss(z, groups), (torch.logit(scores).requires_grad_(),))


def test_the_probed_loss_has_the_gradient_of_its_threshold_held_constant() -> None:
    scores, groups, _ = batch(1)
    points = scores.min() + (scores.max() - scores.min()) * torch.linspace(0, 1, 100, dtype=torch.float64)
    values = [abs(smoothed_gap(scores.numpy(), groups.numpy(), 0, 1, float(t), 10.0)) for t in points]
    held = MCDPLoss(10.0, search="frozen", threshold=float(points[int(np.argmax(values))]))
    one, other = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    LOSSES["probe"]()(one, groups).backward()
    held(other, groups).backward()
    torch.testing.assert_close(one.grad, other.grad)


@given(seed=st.integers(0, 2**31), name=st.sampled_from(sorted(LOSSES)), n_groups=st.integers(2, 4))
def test_not_negative_finite_and_inputs_unchanged(seed: int, name: str, n_groups: int) -> None:
    scores, groups, labels = batch(seed, n_groups=n_groups)
    before = scores.clone()
    scores.requires_grad_()
    value = LOSSES[name](criterion="equalized_odds")(scores, groups, labels)
    value.backward()
    assert 0.0 <= value.item() <= 1.0 + 1e-9
    assert torch.isfinite(scores.grad).all()
    assert torch.equal(scores.detach(), before)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_a_batch_that_lacks_a_group(name: str) -> None:
    scores = torch.rand(8, requires_grad=True)
    value = LOSSES[name](n_groups=2)(scores, torch.zeros(8, dtype=torch.long))
    value.backward()
    assert value.item() <= 1e-6
    assert torch.equal(scores.grad, torch.zeros(8))


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_of_three_groups_the_missing_one_is_not_compared(name: str) -> None:
    scores, groups, _ = batch(2)
    two = LOSSES[name](n_groups=2)(scores, groups)
    three = LOSSES[name](n_groups=3)(scores, groups)
    torch.testing.assert_close(two, three)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_many_groups_are_the_worst_pair(name: str) -> None:
    scores, groups, _ = batch(3, rows=30, n_groups=3)
    pairs = []
    for first, second in ((0, 1), (0, 2), (1, 2)):
        among = (groups == first) | (groups == second)
        codes = (groups != first).long()
        if name == "probe":  # which looks at the range of all scores
            pairs.append(LOSSES[name](n_groups=2)(scores, codes, None, among.to(scores)))
        else:
            pairs.append(LOSSES[name](n_groups=2)(scores[among], codes[among]))
    torch.testing.assert_close(LOSSES[name]()(scores, groups), torch.stack(pairs).max())


@pytest.mark.parametrize("name", ["dp", "abcc", "exact", "window", "frozen", "soft"])
def test_weights_count_as_repeated_rows(name: str) -> None:
    scores, groups, _ = batch(4)
    counts = torch.arange(24) % 3 + 1
    weighted = LOSSES[name]()(scores, groups, None, counts.double())
    repeated = LOSSES[name]()(scores.repeat_interleave(counts), groups.repeat_interleave(counts))
    torch.testing.assert_close(weighted, repeated)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_under_vmap_and_compile(name: str) -> None:
    loss = LOSSES[name](n_groups=2)
    scores = torch.stack([batch(seed)[0] for seed in range(3)])
    _, groups, _ = batch(0)
    one_by_one = torch.stack([loss(row, groups) for row in scores])
    torch.testing.assert_close(torch.func.vmap(loss, in_dims=(0, None))(scores, groups), one_by_one)
    graph = torch.compile(loss, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(graph(scores[0], groups), one_by_one[0])


def test_the_losses_agree_with_the_metrics() -> None:
    census = lp.datasets.make_census(400, random_state=0)
    scores, groups = torch.tensor(census.score), torch.tensor(census.sensitive_features == "Male").long()
    known = {"sensitive_features": groups}
    assert DPLoss()(scores, groups).item() == pytest.approx(lp.delta_dp(None, census.score, **known))
    sharp = ABCCLoss(1e5)(scores, groups).item()
    assert sharp == pytest.approx(lp.abcc(None, census.score, **known), abs=2e-3)


@pytest.mark.parametrize("epsilon", [0.0, 0.02, 0.1])
def test_the_smoothed_gap_goes_to_the_exact_one(epsilon: float) -> None:
    census = lp.datasets.make_census(300, random_state=1)
    scores, groups = torch.tensor(census.score), torch.tensor(census.sensitive_features == "Male").long()
    exact = lp.mcdp(None, census.score, sensitive_features=groups, epsilon=epsilon)
    errors = [
        abs(MCDPLoss(temperature, epsilon)(scores, groups).item() - exact)
        for temperature in (10.0, 100.0, 1000.0, 1e6)
    ]
    assert errors[3] < min(errors[:3])
    assert errors[3] < 1e-3


def test_the_soft_maximum_lies_between_the_area_and_the_maximum() -> None:
    scores, groups, _ = batch(7, rows=200)
    powers = [1.0, 2.0, 8.0, 64.0, 512.0]
    values = [MCDPLoss(10.0, search="soft", sharpness=p)(scores, groups).item() for p in powers]
    assert values == sorted(values)
    assert values[0] == pytest.approx(ABCCLoss(10.0)(scores, groups).item(), rel=0.02)
    top = MCDPLoss(10.0)(scores, groups).item()
    assert values[-1] <= top + 1e-9
    assert values[-1] == pytest.approx(top, rel=0.02)


@pytest.mark.parametrize("sharpness", [1.0, 2.0, 8.0])
def test_the_soft_value_is_the_norm_of_the_gap(sharpness: float) -> None:
    scores, groups, _ = batch(8)
    value = MCDPLoss(20.0, search="soft", sharpness=sharpness)(scores, groups).item()
    scan = abs(scanned_gaps(scores.numpy(), groups.numpy(), 0, 1, 20.0, 100_001))
    norm = np.trapezoid(scan**sharpness, dx=1e-5) ** (1.0 / sharpness)
    assert value == pytest.approx(norm, rel=1e-3)


def test_the_exact_value_is_that_of_the_definition() -> None:
    scores, groups, _ = batch(8)
    value = MCDPLoss(20.0)(scores, groups).item()
    scan = abs(scanned_gaps(scores.numpy(), groups.numpy(), 0, 1, 20.0, 100_001))
    assert value == pytest.approx(scan.max(), abs=1e-7)


OF_A_MAXIMUM = ["exact", "window", "frozen", "soft", "probe"]


@pytest.mark.parametrize("name", OF_A_MAXIMUM)
def test_a_memory_gives_the_value_and_the_batch_the_gradient(name: str) -> None:
    loss = LOSSES[name](memory=64, n_groups=2)
    past, groups, _ = batch(9, rows=64)
    past = torch.where(groups == 0, past * 0.5, 0.5 + past * 0.5).float()
    loss(past, groups)
    small = torch.tensor([0.9, 0.8, 0.7], requires_grad=True)
    value = loss(small, torch.tensor([0, 0, 1]))
    value.backward()
    torch.testing.assert_close(value.detach(), LOSSES[name]()(past, groups))
    assert (small.grad[:2] < 0).all()
    assert small.grad[2] > 0
    assert int(loss.memory.written) == 67
    loss.eval()
    loss(past, groups)
    assert int(loss.memory.written) == 67


@pytest.mark.parametrize("name", OF_A_MAXIMUM)
@pytest.mark.parametrize("n_groups", [2, 3])
def test_before_anything_is_remembered_a_memory_changes_nothing(name: str, n_groups: int) -> None:
    scores, groups, _ = batch(10, n_groups=n_groups)
    with_memory, without = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    value = LOSSES[name](memory=64, n_groups=n_groups)(with_memory, groups)
    expected = LOSSES[name](n_groups=n_groups)(without, groups)
    (value + expected).backward()
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(with_memory.grad, without.grad)


def test_a_memory_knows_groups_that_the_batch_lacks() -> None:
    past, groups, _ = batch(11, rows=64, n_groups=4)
    few = torch.tensor([0, 1, 2, 0, 1, 2])
    gradients = []
    for n_groups in (4, None):
        loss = MCDPLoss(10.0, memory=64, n_groups=n_groups)
        # The fourth group is far from the others: the worst pair has it, and the batch has not.
        loss(torch.where(groups == 3, 0.9 + 0.1 * past, 0.2 * past), groups)
        scores = torch.linspace(0.1, 0.3, 6, dtype=torch.float64, requires_grad=True)
        loss(scores, few).backward()
        gradients.append(scores.grad)
    torch.testing.assert_close(gradients[0], torch.zeros(6, dtype=torch.float64))
    torch.testing.assert_close(gradients[1], gradients[0])


def test_a_memory_without_a_group_in_the_batch_has_no_gradient() -> None:
    loss = MCDPLoss(10.0, memory=16, n_groups=2)
    scores, groups, _ = batch(9, rows=16)
    loss(scores.float(), groups)
    alone = torch.rand(4, requires_grad=True)
    value = loss(alone, torch.zeros(4, dtype=torch.long))
    value.backward()
    assert value.item() > 0.0
    assert torch.equal(alone.grad, torch.zeros(4))


def test_a_memory_forgets_the_oldest() -> None:
    loss = MCDPLoss(10.0, memory=4, n_groups=2)
    for start in (0.0, 0.1, 0.2):
        loss(torch.tensor([start, start + 0.5, start + 0.05]), torch.tensor([0, 1, 0]))
    assert sorted(round(score, 2) for score in loss.memory.scores.tolist()) == [0.15, 0.2, 0.25, 0.7]


def test_shares_of_each_group_sum_to_one() -> None:
    rows = contrasts(torch.tensor([0, 1, 2, 1, -1]), 3, dtype=torch.float64)
    assert rows.shape == (3, 5)
    torch.testing.assert_close(rows.clamp_min(0).sum(1), torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(rows[:, 4], torch.zeros(3, dtype=torch.float64))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: MCDPLoss(0.0), r"temperature.*0"),
        (lambda: ABCCLoss(-1.0), r"temperature.*-1"),
        (lambda: MCDPLoss(epsilon=-0.1), r"epsilon must be .* got -0\.1"),
        (lambda: MCDPLoss(search="guess"), r"search.*exact.*guess"),
        (lambda: MCDPLoss(search="frozen"), r"frozen.*threshold.*None"),
        (lambda: MCDPLoss(search="soft", epsilon=0.1), r"soft.*epsilon.*0\.1"),
        (lambda: MCDPLoss(search="soft", sharpness=0.5), r"sharpness.*0\.5"),
        (lambda: DPLoss(criterion="parity"), r"criterion.*parity"),
        (lambda: DPLoss(n_groups=1), r"n_groups.*1"),
        (
            lambda: DPLoss(criterion="equal_opportunity")(torch.rand(2), torch.tensor([0, 1])),
            r"equal_opportunity.*y_true.*None",
        ),
        (
            lambda: MCDPLoss()(torch.rand(3, 1), torch.tensor([[0], [1], [0]])),
            r"y_score.*\(3, 1\).*squeeze\(1\)",
        ),
        (
            lambda: DPLoss()(torch.rand(3), torch.tensor([-1, 1, 1])),
            r"sensitive_features.*-1",
        ),
        (lambda: DPLoss(n_groups=2)(torch.rand(3), torch.tensor([0, 1, -1])), r"sensitive_features.*-1"),
        (
            lambda: DPLoss(n_groups=2)(torch.rand(3), torch.tensor([0, 1, 2])),
            r"sensitive_features.*n_groups=2.*2",
        ),
        (
            lambda: DPLoss()(torch.rand(3), torch.tensor([0, 1])),
            r"sensitive_features.*\(2,\).*y_score.*\(3,\)",
        ),
        (
            lambda: MCDPLoss()(torch.rand(3), torch.tensor([[0], [1], [0]])),
            r"sensitive_features.*\(3, 1\).*sensitive_features\.squeeze\(1\)",
        ),
        (
            lambda: MCDPLoss()(torch.rand(3, 2), torch.tensor([0, 1, 0])),
            r"y_score.*\(3, 2\).*y_score\[:, 1\] - y_score\[:, 0\]",
        ),
        (lambda: MCDPLoss()(torch.rand(3, 5), torch.tensor([0, 1, 0])), r"y_score.*\(3, 5\)"),
        (lambda: MCDPLoss()(torch.rand(()), torch.tensor(0)), r"y_score.*\(n_samples,\), got \(\)$"),
        (lambda: MCDPLoss()(torch.rand(0), torch.zeros(0).long()), r"y_score is empty.*gather_rows"),
        (lambda: MCDPLoss(memory=8)(torch.rand(0), torch.zeros(0).long()), r"y_score is empty"),
        (lambda: MCDPLoss()(torch.rand(2), ["f", "m"]), r"sensitive_features.*list; use .*np\.unique"),
        (lambda: MCDPLoss()(torch.rand(2), np.array(["f", "m"])), r"sensitive_features.*ndarray; use"),
        (lambda: MCDPLoss()(np.zeros(2), torch.tensor([0, 1])), r"y_score.*ndarray; use torch\.as_tensor"),
        (
            lambda: MCDPLoss()(torch.rand(2), torch.tensor([0.0, 0.5])),
            r"sensitive_features.*torch\.float32.*\.long\(\)",
        ),
    ],
)
def test_what_is_refused(build: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_the_advice_for_names_of_groups_gives_the_loss_of_their_codes() -> None:
    scores, groups = torch.tensor([0.1, 0.4, 0.9]), ["f", "f", "m"]
    codes = torch.as_tensor(np.unique(groups, return_inverse=True)[1])  # as the message says
    torch.testing.assert_close(MCDPLoss()(scores, codes), MCDPLoss()(scores, torch.tensor([0, 0, 1])))


def test_a_loss_can_be_copied() -> None:
    from copy import deepcopy

    scores, groups = torch.rand(20, generator=torch.Generator().manual_seed(0)), torch.arange(20) % 2
    loss = MCDPLoss(n_groups=2)
    again = deepcopy(loss)
    torch.testing.assert_close(again(scores, groups), loss(scores, groups))


@pytest.mark.parametrize(
    ("name", "memory"),
    [*((name, 0) for name in sorted(LOSSES)), *((name, 8) for name in sorted({*LOSSES} - {"dp", "abcc"}))],
)
def test_a_code_of_no_group_is_never_a_loss_of_nothing(name: str, memory: int) -> None:
    loss = LOSSES[name](n_groups=2, **({"memory": memory} if memory else {}))
    scores, wrong = torch.rand(4), torch.tensor([0, 0, 5, 5])
    with pytest.raises(ValueError, match=r"sensitive_features.*n_groups.*5"):
        loss(scores, wrong)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_where_codes_cannot_be_looked_at_a_code_of_no_group_gives_nan(name: str) -> None:
    both = torch.tensor([[0, 0, 5, 5], [0, 0, 1, 1]])
    wrong, right = torch.func.vmap(LOSSES[name](n_groups=2), in_dims=(None, 0))(torch.rand(4), both)
    assert wrong.isnan()
    assert right.isfinite()
