"""From rows of a file to what a ranker was fitted on: encoded, in order, dense or not, scaled."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from scipy import sparse

from deltarank.datasets.data import Data
from deltarank.datasets.encoder import Encoder, NumberColumn
from deltarank.datasets.readers.formats import FORMATS, detect_format, read, read_blocks
from deltarank.datasets.scaling import Scaler

NUMBERED = ("libsvm", "xmc")
# Of a sparse matrix with more than this share of its cells stored, a dense one takes less room.
DENSE_SHARE = 0.5


@dataclass(frozen=True)
class Preparation:
    r"""How rows of a file become rows of X for a ranker: plain data, kept beside it in its file.

    Attributes
    ----------
    n_features : int
    dense : bool
        Whether X is made dense.
    encoder : Encoder or None
        For tables.
    names : tuple of str, or None
        Of features that are not encoded, but have names.
    first_number : int
        What the first feature is called where features have numbers.
    scaler : Scaler or None
    label_list : str or None
        Column of label lists, where labels came so.
    separator : str
        Stands between the labels of a list.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from deltarank.datasets import Preparation, read
    >>> path = pathlib.Path(tempfile.mkdtemp(), "items.csv")
    >>> _ = path.write_text("size,colour,tags\n1,red,a\n3,blue,b\n")
    >>> data = read(path)
    >>> preparation = Preparation.fit(data, scale=True)
    >>> preparation.transform(data.X)
    array([[-1.,  0.,  1.],
           [ 1.,  1.,  0.]])
    >>> _ = path.write_text("colour,size\ngreen,2\n")
    >>> preparation.transform(preparation.read(path).X)
    array([[0., 0., 0.]])
    >>> Preparation.from_json(preparation.to_json()) == preparation
    True
    """

    n_features: int
    dense: bool = False
    encoder: Encoder | None = None
    names: tuple[str, ...] | None = None
    first_number: int = 0
    scaler: Scaler | None = None
    label_list: str | None = None
    separator: str = ","

    @classmethod
    def fit(cls, data: Data, *, scale: bool, first_number: int = 0) -> "Preparation":
        """Learn from training rows; `scale` brings columns of numbers to one scale.

        Sparse features are not scaled, but for columns of numbers beside columns of text.
        """
        stored = data.X.nnz / max(1, np.prod(data.X.shape)) if sparse.issparse(data.X) else 1.0
        preparation = cls(
            data.X.shape[1],
            dense=data.encoder is None and stored > DENSE_SHARE,
            encoder=data.encoder,
            names=None if data.encoder is not None else data.feature_names,
            first_number=first_number,
            label_list=data.label_column,
            separator=data.separator or ",",
        )
        columns = preparation._number_columns()
        if not scale or not columns:
            return preparation
        return replace(preparation, scaler=Scaler.fit(preparation._arranged(data.X), columns))

    def _number_columns(self) -> list[int]:
        if self.encoder is None:
            return list(range(self.n_features)) if self.dense else []
        at, columns = 0, []
        for column in self.encoder.columns:
            if isinstance(column, NumberColumn):
                columns.append(at)
            at += len(column.feature_names())
        return columns

    def feature_names(self) -> list[str]:
        """Return one name per feature: its number, where it has no other.

        Examples
        --------
        >>> Preparation(2, names=("size", "weight")).feature_names()
        ['size', 'weight']
        >>> Preparation(2, first_number=1).feature_names()
        ['1', '2']
        """
        if self.encoder is not None:
            return self.encoder.feature_names()
        if self.names is not None:
            return list(self.names)
        return [str(self.first_number + j) for j in range(self.n_features)]

    def _n_named(self) -> int:
        """Return how many features there are by their names; numbers name any."""
        named = self.names if self.encoder is None else self.encoder.feature_names()
        return self.n_features if named is None else len(named)

    def read(self, path: str | PathLike[str], *, format: str | None = None, **options: Any) -> Data:
        """Read rows with the features of training, as `transform` wants them.

        Labels are not read unless ``labels=`` says which; features by number bring theirs along.
        """
        name = self._checked_format(path, format)
        if name in NUMBERED:
            return read(path, format=name, **options)
        options.setdefault("labels", [])
        data = read(path, format=name, encoder=self.encoder, **options)
        return data if self.names is None else self._by_name(path, data)

    def read_blocks(
        self, path: str | PathLike[str], *, format: str | None = None, **options: Any
    ) -> Iterator[Data]:
        r"""Yield the rows of `read` some at a time, so that memory does not grow with the file.

        A table whose model has no encoder is read whole: what its columns are, all rows decide.
        Of options a table may have ``vectors``.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from deltarank.datasets import read
        >>> path = pathlib.Path(tempfile.mkdtemp(), "items.csv")
        >>> _ = path.write_text("size,tags\n1,a\n3,b\n")
        >>> preparation = Preparation.fit(read(path), scale=False)
        >>> [block.X.shape for block in preparation.read_blocks(path)]
        [(2, 1)]
        """
        name = self._checked_format(path, format)
        if self.encoder is None and name not in (*NUMBERED, "arff"):
            yield self.read(path, format=name, **options)
            return
        for data in read_blocks(path, self.encoder, format=name, **options):
            yield data if self.names is None else self._by_name(path, data)

    def _checked_format(self, path: str | PathLike[str], format: str | None) -> str:
        name = detect_format(path) if format is None else format
        by_number = self.encoder is None and self.names is None
        if name in FORMATS and (name in NUMBERED) != by_number:
            wanted = "numbers (libsvm or xmc)" if by_number else "names (a table or ARFF)"
            raise ValueError(f"{path}: features must have {wanted}, as in training; got {name}")
        return name

    def _by_name(self, path: Any, data: Data) -> Data:
        names: Sequence[str] = self.names or ()
        column_of = {name: j for j, name in enumerate(data.feature_names or ())}
        for name in names:
            if name not in column_of:
                raise ValueError(f"{path} has no column {name!r}, a feature in training")
        return replace(data, X=data.X[:, [column_of[name] for name in names]])

    def transform(self, X: Any) -> Any:
        """Return what the ranker takes; of numbered features, those unknown in training go."""
        X = self._arranged(X)
        return X if self.scaler is None else self.scaler.transform(X)

    def _arranged(self, X: Any) -> Any:
        if self.encoder is None and sparse.issparse(X) and X.shape[1] != self.n_features:
            X = X[:, : self.n_features]
            X = sparse.csr_array((X.data, X.indices, X.indptr), (X.shape[0], self.n_features))
        return X.toarray() if self.dense and sparse.issparse(X) else X

    def given(self, feature: int, value: float) -> float | str | None:
        """Return the value of a feature of `transform` as it was given; None if it was missing.

        Examples
        --------
        >>> preparation = Preparation(1, scaler=Scaler((0,), (5.0,), (2.0,)))
        >>> preparation.given(0, -1.0), preparation.given(0, float("nan"))
        (3.0, None)
        """
        if not math.isfinite(value):
            return None
        codes = {} if self.encoder is None else self.encoder.code_columns()
        if feature in codes:
            return codes[feature].values[int(value)]
        if self.scaler is not None and feature in self.scaler.columns:
            at = self.scaler.columns.index(feature)
            return float(value * self.scaler.scales[at] + self.scaler.means[at])
        return value

    def to_json(self, *, packed: bool = False) -> dict[str, Any]:
        """Return the preparation as dicts, lists, strings and numbers; `packed` as in `Encoder`."""
        return {
            "n_features": self.n_features,
            "dense": self.dense,
            "encoder": None if self.encoder is None else self.encoder.to_json(packed=packed),
            "names": None if self.names is None else list(self.names),
            "first_number": self.first_number,
            "scaler": None if self.scaler is None else self.scaler.to_json(),
            "label_list": self.label_list,
            "separator": self.separator,
        }

    @classmethod
    def from_json(cls, state: Any) -> "Preparation":
        """Make a preparation of what `to_json` gave, and refuse anything else."""
        if not isinstance(state, dict) or set(state) != set(cls(1).to_json()):
            raise ValueError("a preparation must have the parts of one")
        encoder, names, scaler = state["encoder"], state["names"], state["scaler"]
        preparation = cls(
            **{
                **state,
                "encoder": None if encoder is None else Encoder.from_json(encoder),
                "names": None if names is None else tuple(names),
                "scaler": None if scaler is None else Scaler.from_json(scaler),
            }
        )
        preparation._check()
        return preparation

    def _check(self) -> None:
        if (
            type(self.n_features) is not int
            or type(self.dense) is not bool
            or type(self.first_number) is not int
            or not isinstance(self.label_list, str | None)
            or not isinstance(self.separator, str)
            or not all(isinstance(name, str) for name in self.names or ())
            or self.first_number < 0
            or not self.separator
            or self._n_named() != self.n_features
            or (self.scaler is not None and max(self.scaler.columns, default=0) >= self.n_features)
        ):
            raise ValueError("a preparation of a model file is damaged")
