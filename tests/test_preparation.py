"""From training rows to other rows of the same kind: scaling, encoding, finding labels."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from deltarank.datasets import Data, Preparation, Scaler, example_rows, read


def table(tmp_path, text, name="table.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


class TestScaler:
    X = np.random.default_rng(0).normal(3, 7, size=(50, 4))

    def test_it_does_what_scikit_learns_does(self):
        X = self.X * [1, 1e-9, 1e9, 1]
        scaler = Scaler.fit(X, [0, 1, 2])
        wanted = StandardScaler().fit(X[:, :3]).transform(X[:, :3])
        np.testing.assert_allclose(scaler.transform(X)[:, :3], wanted, rtol=1e-9)
        np.testing.assert_array_equal(scaler.transform(X)[:, 3], X[:, 3])

    def test_sparse_and_dense_rows_come_out_the_same(self):
        X = np.where(self.X > 3, self.X, 0)
        scaler = Scaler.fit(X, [1, 3])
        thin = scaler.transform(sparse.csr_array(X))
        assert sparse.issparse(thin)
        assert all((np.diff(row.indices) > 0).all() for row in thin)
        np.testing.assert_allclose(thin.toarray(), scaler.transform(X), rtol=1e-12)

    def test_constant_and_huge_columns_stay_finite(self):
        X = np.column_stack([np.full(9, 0.1), np.linspace(-1e300, 1e300, 9), np.full(9, 1e12)])
        scaled = Scaler.fit(X, [0, 1, 2]).transform(X)
        np.testing.assert_allclose(scaled[:, [0, 2]], 0, atol=1e-3)
        np.testing.assert_allclose(scaled[:, 1].std(), 1)

    @pytest.mark.parametrize(
        "change",
        [
            {"columns": [1, 1]}, {"columns": [-1, 0]}, {"scales": [1.0, 0.0]}, {"means": [1.0]},
            {"means": ["a", "b"]}, {"means": [float("nan"), 0.0]}, {"more": []}, {"scales": 3},
        ],
    )  # fmt: skip
    def test_a_damaged_state_is_refused(self, change):
        state = Scaler.fit(self.X, [0, 2]).to_json()
        with pytest.raises(ValueError, match="scaler"):
            Scaler.from_json({**state, **change})


class TestLabelColumn:
    @pytest.mark.parametrize("name", ["labels", "Label", "TAGS", "tag", "categories"])
    def test_the_one_column_called_so_holds_the_labels(self, tmp_path, name):
        data = read(table(tmp_path, f'size,{name}\n1,"a,b"\n2,b\n'))
        assert data.label_names == ("a", "b")
        assert data.label_column == name

    @pytest.mark.parametrize("head", ["size,colour", "tags,labels", "a,b"])
    def test_where_none_or_two_are_it_the_user_is_asked(self, tmp_path, head):
        with pytest.raises(ValueError, match="labels= must name the column of label lists"):
            read(table(tmp_path, f"{head}\n1,0\n0,1\n"))


class TestPreparation:
    def test_numbers_are_scaled_beside_text_and_categories_are_not(self, tmp_path):
        text = "year,plot,kind,tags\n1990,a man at sea,x,a\n2010,two dogs at home,y,b\n"
        data = read(table(tmp_path, text))
        assert sparse.issparse(data.X)
        X = Preparation.fit(data, scale=True).transform(data.X).toarray()
        names = list(data.feature_names)
        assert X[:, names.index("year")].tolist() == [-1, 1]
        np.testing.assert_array_equal(X[:, 1:], data.X.toarray()[:, 1:])

    def test_other_rows_need_no_labels_no_order_and_no_known_words(self, tmp_path):
        data = read(table(tmp_path, "year,kind,tags\n1990,x,a\n2010,y,b\n"))
        preparation = Preparation.from_json(
            json.loads(json.dumps(Preparation.fit(data, scale=True).to_json()))
        )
        other = table(tmp_path, '"",kind,year\n5,z,2020\n6,y,\n', "other.csv")
        X = preparation.transform(preparation.read(other).X)
        assert X.tolist() == [[2, 0, 0], [0, 0, 1]]

    def test_numbered_features_are_padded_and_unknown_ones_left_out(self, tmp_path):
        data = Data(sparse.csr_array(np.eye(5)[:, :4]), sparse.csr_array(np.eye(5)))
        preparation = Preparation.fit(data, scale=True, first_number=1)
        assert (preparation.dense, preparation.scaler) == (False, None)
        assert preparation.feature_names() == ["1", "2", "3", "4"]
        read_back = preparation.read(table(tmp_path, "0 1:2\n1 2:3 9:1\n", "rows.svm"))
        assert preparation.transform(read_back.X).toarray().tolist() == [[2, 0, 0, 0], [0, 3, 0, 0]]
        short = preparation.read(table(tmp_path, "0 1:2\n", "rows.svm"))
        assert preparation.transform(short.X).toarray().tolist() == [[2, 0, 0, 0]]

    def test_a_sparse_file_of_dense_rows_is_made_dense_and_scaled(self):
        X = np.random.default_rng(0).normal(5, 2, size=(30, 3))
        preparation = Preparation.fit(Data(sparse.csr_array(X), None), scale=True)
        np.testing.assert_allclose(
            preparation.transform(sparse.csr_array(X)), StandardScaler().fit_transform(X)
        )

    def test_sparse_arff_is_read_by_name_with_or_without_label_columns(self, tmp_path):
        head = "@relation r\n" + "".join(f"@attribute {n} numeric\n" for n in "uvw")
        labels = "@attribute l {0,1}\n@attribute k {0,1}\n"
        train = table(tmp_path, f"{head}{labels}@data\n{{0 2,3 1}}\n{{1 5,4 1}}\n", "t.arff")
        data = read(train, labels=-2)
        preparation = Preparation.fit(data, scale=True)
        assert preparation.feature_names() == ["u", "v", "w"]
        np.testing.assert_array_equal(preparation.read(train).X.toarray(), data.X.toarray())
        bare = table(tmp_path, f"{head}@data\n{{2 7}}\n", "bare.arff")
        assert preparation.read(bare).X.toarray().tolist() == [[0, 0, 7]]
        with pytest.raises(ValueError, match=r"features must have names .* got libsvm"):
            preparation.read(table(tmp_path, "0 1:2\n", "rows.svm"))
        other = "@relation r\n@attribute u numeric\n@data\n{0 1}\n"
        with pytest.raises(ValueError, match="has no column 'v', a feature in training"):
            preparation.read(table(tmp_path, other, "other.arff"))

    def test_arff_with_words_can_be_read_without_labels(self, tmp_path):
        text = "@relation r\n@attribute c {red,blue}\n@attribute l {0,1}\n@data\nred,1\nblue,0\n"
        path = table(tmp_path, text, "words.arff")
        preparation = Preparation.fit(read(path, labels=-1), scale=True)
        assert preparation.read(path).X.tolist() == [[1, 0], [0, 1]]
        assert preparation.read(path).Y.shape == (2, 0)

    @pytest.mark.parametrize(
        "change",
        [
            {"n_features": 7}, {"n_features": "2"}, {"dense": 1}, {"names": ["a", 3]},
            {"label_list": 3}, {"separator": None}, {"first_number": 0.5},
            {"scaler": {"columns": [9], "means": [0.0], "scales": [1.0]}}, {"encoder": 3},
        ],
    )  # fmt: skip
    def test_a_damaged_state_is_refused(self, tmp_path, change):
        data = read(table(tmp_path, "year,kind,tags\n1990,x,a\n2010,y,b\n"))
        state = Preparation.fit(data, scale=True).to_json()
        with pytest.raises(ValueError, match=r"preparation|encoder|damaged"):
            Preparation.from_json({**state, **change})


def test_the_example_is_the_same_for_a_seed_small_and_has_tags_that_follow_from_words():
    rows = example_rows()
    assert rows == example_rows(400, seed=0) != example_rows(400, seed=1)
    assert len(json.dumps(rows)) < 100_000
    chili = [row["tags"] for row in rows if "chili" in row["description"]]
    plain = [
        row["tags"] for row in rows if not {"chili", "curry"} & set(row["description"].split())
    ]
    assert np.mean(["spicy" in tags for tags in chili]) > 0.8
    assert np.mean(["spicy" in tags for tags in plain]) < 0.1
