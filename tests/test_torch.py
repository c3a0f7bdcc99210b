"""The losses for networks: equal to the library's own, differentiable, and hard to break."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from deltarank import instance_weights
from deltarank.core.losses import LOSSES
from deltarank.metrics import pairwise_loss

torch = pytest.importorskip("torch", reason="PyTorch absent: pip install 'deltarank[torch]'")
from deltarank import torch as losses  # noqa: E402

UnivariateRankingLoss, PairwiseRankingLoss = (
    losses.UnivariateRankingLoss,
    losses.PairwiseRankingLoss,
)
NAMED = ["rank", "uniform", "recall", "ndcg", "min", ("ndcg", 3)]
BOTH = [UnivariateRankingLoss, PairwiseRankingLoss]


def rows(seed=0, n=40, m=9, spread=2.0):
    """Rows of every size, the trivial ones too."""
    generator = np.random.default_rng(seed)
    sizes = np.arange(n) % (m + 1)
    Y = (generator.random((n, m)).argsort(axis=1) < sizes[:, None]).astype(int)
    return Y, spread * generator.normal(size=(n, m))


def univariate_by_definition(Y, scores, weight, surrogate, cost=1.0):
    weights = instance_weights(Y, weight, normalize=False)
    cells = np.where(Y == 1, cost, 1.0) * LOSSES[surrogate].value((2 * Y - 1) * scores)
    return weights * cells.sum(axis=1)


def test_there_is_a_tensor_form_of_every_weight():
    from deltarank.core.weights import WEIGHTS

    assert set(losses.WEIGHTS) == set(WEIGHTS)


@pytest.mark.parametrize("weight", NAMED)
@pytest.mark.parametrize("surrogate", losses.UNIVARIATE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_univariate_loss_is_the_librarys(weight, surrogate, dtype):
    Y, scores = rows()
    loss = UnivariateRankingLoss(weight, surrogate, positive_cost=2.5, reduction="none")
    found = loss(torch.tensor(scores, dtype=dtype), torch.tensor(Y))
    expected = univariate_by_definition(Y, scores, weight, surrogate, 2.5)
    assert_allclose(found.numpy(), expected, rtol=1e-6 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("weight", NAMED)
@pytest.mark.parametrize("surrogate", losses.PAIRWISE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_pairwise_loss_is_the_librarys(weight, surrogate, dtype):
    Y, scores = rows(1)
    narrow = torch.tensor(scores, dtype=dtype)
    found = PairwiseRankingLoss(weight, surrogate, reduction="none")(narrow, torch.tensor(Y))
    expected = pairwise_loss(Y, narrow.double().numpy(), surrogate, weight, per_instance=True)
    assert_allclose(found.numpy(), expected, rtol=1e-6 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("surrogate", ["logistic", "hinge", "squared_hinge", "squared"])
def test_pairwise_losses_of_large_logits_are_the_librarys(surrogate):
    Y, scores = rows(2, spread=1e4)
    found = PairwiseRankingLoss(surrogate=surrogate)(torch.tensor(scores), torch.tensor(Y))
    assert_allclose(found.item(), pairwise_loss(Y, scores, surrogate), rtol=1e-6)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("size", [1.0, 1e4])
def test_losses_and_gradients_stay_finite(kind, size):
    Y, scores = rows(3, spread=size)
    table = losses.UNIVARIATE if kind is UnivariateRankingLoss else losses.PAIRWISE
    for surrogate in table:
        logits = torch.tensor(scores, dtype=torch.float32, requires_grad=True)
        loss = kind(surrogate=surrogate)(logits, torch.tensor(Y))
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("kind", BOTH)
def test_gradients_are_finite_differences(kind):
    Y, scores = rows(4, n=6, m=5)
    table = losses.UNIVARIATE if kind is UnivariateRankingLoss else losses.PAIRWISE
    for surrogate in table:
        logits = torch.tensor(scores, requires_grad=True)
        loss = kind(surrogate=surrogate)
        assert torch.autograd.gradcheck(lambda z, f=loss: f(z, torch.tensor(Y)), (logits,))


def test_the_continued_exponential_has_no_kink():
    edge = torch.tensor([-losses.LARGEST_EXPONENT], dtype=torch.float64)
    slopes = []
    for step in (-1e-9, 1e-9):
        margin = (edge + step).requires_grad_()
        losses._exponential(margin).backward()
        slopes.append(margin.grad.item())
    assert_allclose(slopes[0], slopes[1], rtol=1e-6)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("weight", NAMED)
def test_unknown_labels_are_as_good_as_absent(kind, weight):
    Y, scores = rows(5, n=30, m=8)
    known = np.random.default_rng(0).random(Y.shape) < 0.7
    targets = torch.tensor(np.where(known, Y, np.nan))
    logits = torch.tensor(np.where(known, scores, np.inf), requires_grad=True)
    loss = kind(weight, reduction="none")
    found = loss(logits, targets, torch.tensor(known))
    for i in range(30):
        if known[i].any():
            some = slice(i, i + 1), known[i]
            alone = loss(torch.tensor(scores[some]), torch.tensor(Y[some]))
            assert_allclose(found[i].item(), alone.item(), rtol=1e-12)
    found.sum().backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[~torch.tensor(known)] == 0).all()


@pytest.mark.parametrize("kind", BOTH)
def test_reductions_and_a_callable_weight(kind):
    Y, scores = rows(6)
    logits, targets = torch.tensor(scores), torch.tensor(Y)
    each = kind(reduction="none")(logits, targets)
    assert each.shape == (40,)
    assert_allclose(kind(reduction="sum")(logits, targets).item(), each.sum().item())
    assert_allclose(kind()(logits, targets).item(), each.mean().item())
    twice = kind(lambda y: torch.full((len(y),), 2.0), reduction="none")(logits, targets)
    once = kind("uniform", reduction="none")(logits, targets)
    ranked = (Y.sum(axis=1) % 9) > 0
    assert_allclose(twice.numpy()[ranked], 2 * once.numpy()[ranked])


@pytest.mark.parametrize("kind", BOTH)
def test_autocast_does_not_cost_digits(kind):
    Y, scores = rows(7)
    logits = torch.tensor(scores, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = kind()(logits, torch.tensor(Y))
    assert found.dtype == torch.float32
    expected = kind()(logits.detach().double(), torch.tensor(Y))
    assert_allclose(found.item(), expected.item(), rtol=1e-6)
    found.backward()
    assert torch.isfinite(logits.grad).all()


BACKENDS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("weight", ["rank", ("ndcg", 3)])
def test_a_compiled_loss_is_the_same(kind, weight, backend):
    Y, scores = rows(8)
    torch.compiler.reset()
    loss = kind(weight)
    compiled = torch.compile(loss, backend=backend, fullgraph=True)
    grads = []
    for function in (loss, compiled):
        logits = torch.tensor(scores, dtype=torch.float32, requires_grad=True)
        function(logits, torch.tensor(Y)).backward()
        grads.append(logits.grad.numpy())
    assert np.abs(grads[0]).max() > 0
    assert_allclose(grads[1], grads[0], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: UnivariateRankingLoss("rnk"), "unknown weight 'rnk'; choose one of"),
        (lambda: UnivariateRankingLoss(("ndcg", 0)), "must be a positive integer; got 0"),
        (lambda: UnivariateRankingLoss(surrogate="hinge"), "unknown surrogate 'hinge'; choose"),
        (lambda: PairwiseRankingLoss(reduction="max"), "unknown reduction 'max'; choose one of"),
        (lambda: UnivariateRankingLoss(positive_cost=0), "positive_cost must be positive; got 0"),
        (lambda: PairwiseRankingLoss()(torch.zeros(2, 3), torch.zeros(2, 4)), "got .2, 3. and .2"),
        (lambda: PairwiseRankingLoss()(torch.zeros(3), torch.zeros(3)), "must both have shape"),
        (
            lambda: PairwiseRankingLoss()(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(2)),
            "mask must have the shape of logits",
        ),
        (
            lambda: PairwiseRankingLoss()(torch.zeros(1, 2), torch.tensor([[0.5, 1.0]])),
            "targets must hold only 0 and 1 where known; got 0.5; mark unknown labels in mask",
        ),
    ],
)
def test_bad_input_is_refused_in_words(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_the_module_shows_its_options():
    shown = repr(PairwiseRankingLoss(surrogate="hinge"))
    assert shown == "PairwiseRankingLoss(weight='rank', surrogate='hinge', reduction='mean')"


def test_the_example_network_beats_the_linear_ranker(run_example):
    example = run_example("plot_train_network")
    assert example["losses"][5] < 0.75 * example["linear"]
