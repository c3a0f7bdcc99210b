"""Read damaged files of one format for a while; a process of its own, since it may crash.

    python fuzzing.py FORMAT SECONDS FOLDER

Prints counts and losses as JSON. Every file is read whole, held to a plain reading of the same
bytes where one can be had, and then read some rows at a time, which must give the same.
"""

import csv
import faulthandler
import gzip
import io
import json
import random
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow
from mutation import BINARY, TEXT, damaged
from pyarrow import feather, ipc, parquet
from scipy import sparse

from deltarank.datasets import DataFileError, Encoder, read
from deltarank.datasets.readers.formats import read_blocks

sys.path.insert(0, str(Path(__file__).parents[1]))
from test_arff import HEAD, MIXED, rows_by_hand
from test_sparse_text import as_rows, by_hand

HANG_S = 20
MEMORY = 8 << 30
N_ROWS = 30
ROWS = [
    {"id": i, "size": i / 8, "colour": ("red", "dark blue", "green")[i % 3],
     "tags": [f"t{j}" for j in range(4) if i >> j & 1]}
    for i in range(N_ROWS)
]  # fmt: skip
TABLES = {"labels": "tags", "separator": "|"}
SVM = "".join(
    f"{i % 4},{4 + i % 3} 1:{i} {2 + i % 5}:{i / 7:.3f}\n" for i in range(N_ROWS)
).encode()


def delimited(separator, **options):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator, lineterminator="\n", **options)
    writer.writerow(ROWS[0])
    writer.writerows([*list(row.values())[:3], "|".join(row["tags"])] for row in ROWS)
    return text.getvalue().encode()


def arrow_stream():
    sink = io.BytesIO()
    table = pyarrow.Table.from_pylist(ROWS)
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=11)
    return sink.getvalue()


def written(write, **options):
    sink = io.BytesIO()
    write(pyarrow.Table.from_pylist(ROWS), sink, **options)
    return sink.getvalue()


def seeds(format):
    """Return valid files, and the options they are read with."""
    if format == "arff":
        dense = "".join(f"{i},{i / 8},{i % 2}\n" for i in range(N_ROWS))
        thin = "".join(f"{{0 {i},{1 + i % 2} 1}}\n" for i in range(N_ROWS))
        return [(HEAD + dense).encode(), (HEAD + thin).encode(), MIXED.encode()], {"labels": -1}
    if format in ("libsvm", "xmc"):
        first = SVM if format == "libsvm" else b"%d 8 7\n" % N_ROWS + SVM
        return [first, first.replace(b"\n", b"\r\n"), gzip.compress(first)], {}
    contents = {
        "csv": lambda: [delimited(","), delimited(";"), delimited(",", quoting=csv.QUOTE_ALL)],
        "tsv": lambda: [delimited("\t"), gzip.compress(delimited("\t"))],
        "jsonl": lambda: ["".join(json.dumps(row) + "\n" for row in ROWS).encode()],
        "parquet": lambda: [
            written(parquet.write_table),
            written(parquet.write_table, row_group_size=11, compression="none"),
        ],
        "arrow": lambda: [written(feather.write_feather, compression="uncompressed"),
                          written(feather.write_feather, chunksize=11), arrow_stream()],
    }  # fmt: skip
    return contents[format](), TABLES


def unpacked(content):
    content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    return content.removeprefix(b"\xef\xbb\xbf")


def plain_rows(format, content):
    """Read a table without the library: one dict per row, or None where that is not so plain."""
    if format == "parquet":
        return parquet.read_table(io.BytesIO(content)).to_pylist()
    if format == "arrow":
        is_file = content.startswith(b"ARROW1")
        source = io.BytesIO(content)
        return (ipc.open_file if is_file else ipc.open_stream)(source).read_all().to_pylist()
    lines = unpacked(content).decode().split("\n")
    while not lines[-1].strip("\r"):
        lines.pop()
    if format == "jsonl":
        return [json.loads(line) for line in lines if line.strip()]
    if any('"' in line for line in lines):
        return None
    rows = [line.removesuffix("\r") for line in lines]
    comma = ";" if rows[0].count(";") > rows[0].count(",") else ","
    names, *cells = (row.split("\t" if format == "tsv" else comma) for row in rows)
    return [dict(zip(map(str.strip, names), row, strict=True)) for row in cells]


def labels_of(cell):
    """Return the labels that a cell means, or None where that is not so plain."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return set()
    items = cell.split("|") if isinstance(cell, str) else cell
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        return None
    return {item.strip() for item in items}


def require(fine, problem):
    if not fine:
        raise AssertionError(problem)


def check_consistent(data):
    """Shapes, names and values fit each other."""
    n_rows, n_features = data.X.shape
    require(data.Y.shape[0] == n_rows > 0, f"X has {n_rows} rows, Y {data.Y.shape[0]}")
    for matrix in (data.X, data.Y):
        if sparse.issparse(matrix):
            matrix.check_format(full_check=True)
    values = data.X.data if sparse.issparse(data.X) else data.X
    require(not np.isinf(values).any(), "X holds infinity")
    require(set(np.unique(data.Y.data)) <= {0, 1}, "Y holds more than 0 and 1")
    require(data.feature_names is None or len(data.feature_names) == n_features, "feature names")
    require(data.label_names is None or len(data.label_names) == data.Y.shape[1], "label names")


def check_rows(format, content, data):
    """Labels and numbers stand in the rows where a plain reading finds them."""
    if format == "libsvm":
        require(as_rows(data) == by_hand(unpacked(content)), "other rows")
    elif format == "xmc":
        head, _, rest = unpacked(content).partition(b"\n")
        sizes = tuple(map(int, head.split()))
        require((*data.X.shape, data.Y.shape[1]) == sizes, "other sizes than promised")
        require(as_rows(data, 0) == by_hand(rest, 0), "other rows")
    elif format == "arff":
        if content.startswith(HEAD.encode()) and content.isascii():
            X = data.X.toarray() if sparse.issparse(data.X) else data.X
            found = np.column_stack([X, data.Y.toarray()]).tolist()
            require(found == rows_by_hand(content.decode()[len(HEAD) :]), "other rows")
    elif (rows := plain_rows(format, content)) is not None:
        check_table(data, rows)


def check_table(data, rows):
    require(data.X.shape[0] == len(rows), f"{data.X.shape[0]} rows; {len(rows)} by hand")
    for i, row in enumerate(rows):
        wanted = labels_of(row.get("tags"))
        found = {data.label_names[j] for j in data.Y[[i]].indices}
        require(wanted is None or found == wanted, f"row {i}: labels {found}, by hand {wanted}")
    if "id" in data.feature_names:
        column = data.X[:, [data.feature_names.index("id")]]
        found = (column.toarray() if sparse.issparse(column) else column).ravel()
        wanted = np.array([number(row.get("id")) for row in rows])
        known = ~np.isnan(wanted)  # a missing number is the mean of the others
        require(np.array_equal(found[known], wanted[known]), "other numbers")


def number(cell):
    try:
        return float(cell)
    except (TypeError, ValueError):
        return float("nan")


def check_blocks(format, path, data):
    """Some rows at a time are the same rows, or are refused."""
    encoder = data.encoder
    if format == "arff" or (encoder is None and format not in ("libsvm", "xmc")):
        return
    try:
        blocks = [block.X for block in read_blocks(path, encoder, format=format, n_bytes=100)]
    except ValueError as error:
        require(str(path) in str(error), f"in blocks: {error!r}")
        return
    stack = sparse.vstack if sparse.issparse(data.X) else np.vstack
    widest = max(block.shape[1] for block in blocks)
    for block in blocks:
        if sparse.issparse(block):
            block.resize(block.shape[0], widest)
    whole, pieces = data.X, stack(blocks)
    if sparse.issparse(whole):
        whole, pieces = whole.toarray(), pieces.toarray()
        whole = whole[:, : pieces.shape[1]]
    require(np.array_equal(whole, pieces, equal_nan=True), "blocks hold other rows")


def try_once(format, path, options):
    """Return what became of a file: refused, survived, or why it is lost."""
    content = path.read_bytes()
    try:
        data = read(path, format=format, **options)
    except DataFileError:
        return "refused"
    except ValueError as error:
        return "refused" if str(path) in str(error) else f"the error names no file: {error!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    try:
        check_consistent(data)
        check_rows(format, content, data)
        check_blocks(format, path, data)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "survived"


def fuzz(format, seconds, folder):
    """Damage, read and count until the time is up."""
    rng = random.Random(format)
    contents, options = seeds(format)
    kinds = BINARY if format in ("parquet", "arrow") else TEXT
    counts, losses = {"refused": 0, "survived": 0}, []
    path = folder / "data"
    ends = time.monotonic() + seconds
    n_tried = 0
    while time.monotonic() < ends:
        content = rng.choice(contents)
        if n_tried >= len(contents):
            content = damaged(content, rng, kinds, most=3)
        if n_tried % 50 == 49:
            content = rng.randbytes(rng.randrange(200))
        n_tried += 1
        path.write_bytes(content)
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        outcome = try_once(format, path, options)
        if outcome in counts:
            counts[outcome] += 1
        else:
            kept = folder / f"lost-{n_tried}"
            kept.write_bytes(content)
            losses.append(f"{kept}: {outcome}")
    faulthandler.cancel_dump_traceback_later()
    return {**counts, "losses": losses}


if __name__ == "__main__":
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    Encoder.fit({"warm": [1, 2]})
    print(json.dumps(fuzz(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]))))
