"""Splits by sets of categories against the search written down, and against all splits."""

from contextlib import suppress
from itertools import permutations

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import slow_trees
from deltarank import BoostedTreeRanker, explain, instance_weights, load, save, top_features

RNG = np.random.default_rng(5)
N, M = 150, 5
CODES = RNG.integers(0, 9, N)
X = np.column_stack([CODES, np.round(RNG.normal(size=N), 1), RNG.integers(0, 4, N)])
EFFECTS = RNG.normal(size=(9, M))
Y = (EFFECTS[CODES] + X[:, 1:2] + RNG.normal(size=(N, M)) > 0.3).astype(float)
HOLES = X.copy()
HOLES[RNG.random(X.shape) < 0.15] = np.nan
SAMPLE_WEIGHT = RNG.exponential(size=N) + 0.1
W = instance_weights(Y) * SAMPLE_WEIGHT
W /= np.average(instance_weights(Y)[W > 0], weights=SAMPLE_WEIGHT[W > 0])
COUNTED = W > 0
LIMITS = {"max_leaves": 6, "min_child_weight": 3.0, "learning_rate": 0.3}
FEW = {**LIMITS, "linear_scores": False}
CATEGORIES = {"categorical_features": [0, 2]}


@pytest.mark.parametrize("data", [X, HOLES], ids=["whole", "missing"])
def test_ten_rounds_are_as_written_down(data):
    ranker = BoostedTreeRanker(n_trees=10, **CATEGORIES, **FEW).fit(data, Y, SAMPLE_WEIGHT)
    slow = slow_trees.Trees(data[COUNTED], Y[COUNTED], W[COUNTED], categorical=(0, 2), **LIMITS)
    for stage, scores in enumerate(ranker.staged_decision_function(data[COUNTED]), 1):
        slow.round()
        assert_allclose(scores, slow.scores, atol=1e-10, err_msg=f"round {stage}")
    assert len(ranker.category_sets_) > 10
    # Categories never met, and missing ones, too.
    others = np.column_stack([RNG.integers(0, 12, 60), RNG.normal(size=60), RNG.integers(0, 9, 60)])
    others[RNG.random(others.shape) < 0.1] = np.nan
    assert_allclose(ranker.decision_function(others), slow.score(others), atol=1e-10)


def gain(left, gradients, curvatures):
    """What sides are worth that have these categories left and right."""
    return sum(gradients[s].sum() ** 2 / curvatures[s].sum() for s in (left, ~left))


def test_one_label_gets_the_best_split_of_all_there_are():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 8, 120)
        label = (rng.normal(size=8)[codes] + rng.normal(size=120) > 0).astype(int)
        ranker = BoostedTreeRanker(
            n_trees=1, max_leaves=2, l2=1e-12, min_child_weight=1e-9, categorical_features=[0]
        ).fit(codes[:, None], np.column_stack([label, 1 - label]))
        chance = label.mean()
        gradients = np.array([(chance - label[codes == c]).sum() for c in range(8)])
        curvatures = np.bincount(codes, minlength=8) * chance * (1 - chance)
        every = [np.array([k >> c & 1 for c in range(8)], bool) for k in range(1, 128)]
        best = max(gain(left, gradients, curvatures) for left in every)
        scores = ranker.decision_function(np.arange(8)[:, None])[:, 0]
        left = np.isclose(scores, scores[0])
        assert_allclose(gain(left, gradients, curvatures), best, rtol=1e-9)


def test_many_labels_get_nearly_the_best_split_of_all():
    found, best = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 7, 200)
        labels = (rng.normal(size=(7, 6))[codes] + rng.normal(size=(200, 6)) > 0).astype(int)
        options = {"n_trees": 1, "max_leaves": 2, "min_child_weight": 1e-9, "weight": "uniform"}
        sets = BoostedTreeRanker(categorical_features=[0], **options).fit(codes[:, None], labels)
        found.append(sets.gains_[0])
        # As numbers every order of the categories, of which thresholds cut one each.
        every = np.array([[k >> c & 1 for k in range(1, 64)] for c in range(7)], float)
        marks = BoostedTreeRanker(feature_share=1.0, **options).fit(every[codes], labels)
        best.append(marks.gains_[0])
    assert np.all(np.array(found) <= np.array(best) * (1 + 1e-9))
    assert np.mean(np.array(found) / best) > 0.99


def test_a_set_does_in_one_split_what_thresholds_do_in_many():
    odd = np.tile(np.arange(20), 30)[:, None]
    labels = np.column_stack([odd[:, 0] % 2, 1 - odd[:, 0] % 2])
    options = {"n_trees": 5, "max_leaves": 2, "learning_rate": 1.0}
    sets = BoostedTreeRanker(categorical_features=[True], **options).fit(odd, labels)
    assert sets.score(odd, labels) == 1.0
    assert BoostedTreeRanker(**options).fit(odd, labels).score(odd, labels) < 0.9


def test_what_is_no_category_goes_where_missing_values_go():
    ranker = BoostedTreeRanker(n_trees=10, **CATEGORIES, **FEW).fit(HOLES, Y)
    rows = HOLES[:6].copy()
    rows[:, 0] = np.nan
    odd = rows.copy()
    odd[:, 0] = [-1, 2.5, 256, 1e300, np.nan, 200]
    assert_array_equal(ranker.decision_function(odd), ranker.decision_function(rows))


def test_256_categories_and_missing_ones():
    codes = np.append(np.tile(np.arange(256.0), 4), [np.nan] * 9)[:, None]
    labels = (RNG.random((256, 3)) < 0.5).astype(int)
    labels = np.vstack([np.tile(labels, (4, 1)), np.tile([1, 0, 0], (9, 1))])
    ranker = BoostedTreeRanker(n_trees=40, min_child_weight=1.0, categorical_features=[0])
    assert ranker.fit(codes, labels).score(codes, labels) > 0.95
    assert ranker.rank(codes[-1:], top=1) == 0


def test_sparse_zeros_are_the_first_category():
    dense, listed = (
        BoostedTreeRanker(n_trees=10, **CATEGORIES, **FEW).fit(form(HOLES), Y, SAMPLE_WEIGHT)
        for form in (np.asarray, sparse.csr_array)
    )
    assert_array_equal(dense.category_sets_, listed.category_sets_)
    assert_allclose(
        listed.decision_function(sparse.csr_array(HOLES)),
        dense.decision_function(HOLES),
        atol=1e-10,
    )


def test_columns_go_by_number_mask_and_name():
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    forms = [[0, 2], np.array([0, -1]), [True, False, True], ["a", "c"]]
    scores = [
        BoostedTreeRanker(n_trees=3, categorical_features=form, **FEW)
        .fit(frame, Y)
        .decision_function(frame)
        for form in forms
    ]
    for other in scores[1:]:
        assert_array_equal(other, scores[0])


def test_words_become_numbers_in_a_pipeline(tmp_path):
    frame = pandas.DataFrame({"size": X[:, 1], "colour": [f"c{code}" for code in CODES]})
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    pipeline = make_pipeline(
        make_column_transformer((encoder, ["colour"]), remainder="passthrough"),
        BoostedTreeRanker(n_trees=5, categorical_features=[0], **FEW),
    ).fit(frame, Y)
    new = pandas.DataFrame({"size": [0.0, 0.0], "colour": ["c3", "never met"]})
    save(pipeline, tmp_path / "words.delta")
    again = load(tmp_path / "words.delta").decision_function(new)
    assert_array_equal(again, pipeline.decision_function(new))


def test_a_fit_goes_on_by_the_same_categories():
    whole = BoostedTreeRanker(n_trees=12, **CATEGORIES, **FEW).fit(HOLES, Y)
    parts = BoostedTreeRanker(n_trees=5, warm_start=True, **CATEGORIES, **FEW).fit(HOLES, Y)
    first = next(whole.staged_decision_function(HOLES, at=[5]))
    assert_allclose(parts.decision_function(HOLES), first, atol=1e-12)
    parts.set_params(n_trees=12).fit(HOLES, Y)
    assert len(parts.category_sets_) == np.isnan(parts.thresholds_).sum()
    assert_allclose(next(parts.staged_decision_function(HOLES, at=[5])), first, atol=1e-12)
    with pytest.raises(ValueError, match="needs the categorical_features of the last fit"):
        parts.set_params(n_trees=15, categorical_features=[0]).fit(HOLES, Y)


def test_stages_keep_their_sets():
    ranker = BoostedTreeRanker(n_trees=6, **CATEGORIES, **FEW)
    stages = [fitted.decision_function(X) for fitted in ranker.fit_stages(X, Y, stages=[2, 6])]
    assert_allclose(list(ranker.staged_decision_function(X, at=[2, 6])), stages, atol=1e-12)


def test_categories_add_their_shapley_values():
    options = {"n_trees": 3, "max_leaves": 8, "min_child_weight": 1.0, "linear_scores": False}
    ranker = BoostedTreeRanker(**CATEGORIES, **options).fit(HOLES, Y)
    row, n = np.array([4.0, 0.3, np.nan]), 3

    def below(node):
        if node < 0:
            return ranker.leaf_weights_[~node]
        return sum(below(child) for child in ranker.children_[node])

    sets = np.unpackbits(ranker.category_sets_.view(np.uint8), axis=1, bitorder="little")
    numbers = np.cumsum(np.isnan(ranker.thresholds_)) - 1

    def value(node, known, label):
        if node < 0:
            return ranker.values_[~node, label]
        feature, children = ranker.features_[node], ranker.children_[node]
        if feature in known:
            if np.isnan(row[feature]):
                left = ranker.missing_left_[node]
            elif np.isnan(ranker.thresholds_[node]):
                left = sets[numbers[node], int(row[feature])]
            else:
                left = row[feature] <= ranker.thresholds_[node]
            return value(children[0 if left else 1], known, label)
        means = [value(child, known, label) for child in children]
        return np.average(means, weights=[below(child) for child in children])

    wanted = np.zeros((2, n))
    orders = list(permutations(range(n)))
    for which, label in enumerate((0, 3)):
        for order in orders:
            for place, feature in enumerate(order):
                for sign, known in ((1, order[: place + 1]), (-1, order[:place])):
                    total = sum(value(root, set(known), label) for root in ranker.roots_)
                    wanted[which, feature] += sign * total / len(orders)
    found = explain(ranker, row, 0, 3)
    assert_allclose(found.contributions, wanted[0] - wanted[1], atol=1e-12)


def test_the_effect_of_categories_is_the_size_of_a_difference():
    codes = np.array([[0], [1]] * 20)
    for names in (["low", "high"], ["high", "low"]):
        ranker = BoostedTreeRanker(n_trees=1, min_child_weight=1, categorical_features=[0])
        ranker.fit(codes, [{names[0]}, {names[1]}] * 20)
        zero, one = ranker.decision_function([[0], [1]])[:, 0]
        ((_, effect),) = top_features(ranker, "high")
        assert_allclose(effect, abs(one - zero))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("a", "must be a list of columns"),
        ([3], "numbers of features, below 3, or their names; got 3"),
        ([0.5], r"numbers of features, below 3, or their names; got 0\.5"),
        (["colour"], "names 'colour', but X has no names: fit on a data frame"),
        ([True], "an entry for each of 3 features; got 1"),
        ([1], r"categories as numbers 0, 1, ..., 255 in column 1.*OrdinalEncoder"),
    ],
)
def test_columns_that_are_no_categories_are_refused(wanted, message):
    with pytest.raises(ValueError, match=message):
        BoostedTreeRanker(categorical_features=wanted).fit(X, Y)


def test_a_name_that_is_no_column_is_refused():
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match="names 'colour', which is no column of X"):
        BoostedTreeRanker(categorical_features=["colour"]).fit(frame, Y)


def test_a_file_with_broken_sets_is_refused(tmp_path):
    ranker = BoostedTreeRanker(n_trees=3, **CATEGORIES, **FEW).fit(X, Y)
    ranker.category_sets_ = ranker.category_sets_[1:]
    save(ranker, tmp_path / "broken.delta")
    with pytest.raises(ValueError, match="category_sets_ are not those of the nodes"):
        load(tmp_path / "broken.delta")


def write_table(path, codes, sizes, labels):
    names = ["a", "b", "c"]
    lines = ["shape,size,tags"]
    for code, size, row in zip(codes, sizes, labels, strict=True):
        shape = "" if np.isnan(code) else f"s{int(code)}"
        lines.append(f"{shape},{size},{';'.join(n for n, y in zip(names, row, strict=True) if y)}")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_command_numbers_categories_and_serves_them(tmp_path, monkeypatch, capsys):
    from deltarank.cli import main
    from deltarank.serving.single_row import SingleRow
    from deltarank.storage.prepared import Model

    codes = np.where(RNG.random(N) < 0.1, np.nan, CODES)
    path = write_table(tmp_path / "rows.csv", codes, X[:, 1], Y[:, :3])
    model = tmp_path / "rows.delta"
    options = ["--ranker", "boosted-trees", "--rounds", "5", "--separator", ";"]
    arguments = ["fit", str(path), "--model", str(model), *options]
    monkeypatch.setattr("sys.argv", ["deltarank", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code, capsys.readouterr().err
    fitted = Model.load(model)
    assert fitted.preparation.feature_names() == ["shape", "size"]
    assert_array_equal(fitted.ranker.is_categorical_, [True, False])
    # The same as a fit to numbers of categories, in the order of their names.
    by_hand = BoostedTreeRanker(n_trees=5, categorical_features=[0], random_state=0)
    by_hand.fit(np.column_stack([codes, X[:, 1]]), Y[:, :3])
    data = fitted.preparation.read(path)
    assert_array_equal(
        fitted.scores(fitted.preparation.transform(data.X)),
        by_hand.decision_function(np.column_stack([codes, X[:, 1]])),
    )
    row = SingleRow(fitted.preparation)
    assert_array_equal(row({"shape": "s3", "size": 0.5}), [[3, 0.5]])
    assert_array_equal(row({"shape": "never met", "size": 0.5}), [[np.nan, 0.5]])
    # Reasons give the names that the file has.
    for i in (int(np.flatnonzero(np.isnan(codes))[0]), int(np.flatnonzero(codes == 3)[0])):
        capsys.readouterr()
        monkeypatch.setattr(
            "sys.argv", ["deltarank", "explain", str(model), str(path), "--row", str(i)]
        )
        with suppress(SystemExit):
            main()
        told = capsys.readouterr().out
        wanted = "(missing)" if np.isnan(codes[i]) else "s3"
        assert f"shape\t{wanted}\t" in told


def test_columns_that_name_several_categories_stay_columns_of_0_and_1():
    from deltarank.datasets import Encoder

    table = {"tags": [["a", "b"], ["a"], []], "many": [f"c{k}" for k in range(3)]}
    encoder, features = Encoder.fit_transform(table)
    coded = encoder.with_codes(features)
    assert coded.feature_names() == ["tags=a", "tags=b", "many"]
    assert coded.code_features() == (2,)
    assert_array_equal(encoder.recoded(features, coded), coded.transform(table))
    assert_array_equal(encoder.recoded(sparse.csr_array(features), coded), coded.transform(table))
    assert Encoder.from_json(coded.to_json()) == coded
