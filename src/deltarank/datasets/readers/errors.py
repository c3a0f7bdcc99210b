"""What readers say when they cannot read."""

from os import PathLike, fspath


class DataFileError(ValueError):
    """A data file that cannot be read as it should be: which file, where in it, and why.

    Examples
    --------
    >>> print(DataFileError("bad.svm", "a value must be a number; got 'x'", line=3, column=7))
    bad.svm, line 3, column 7: a value must be a number; got 'x'
    """

    def __init__(
        self,
        path: str | PathLike[str],
        problem: str,
        *,
        line: int | None = None,
        column: int | str | None = None,
    ) -> None:
        self.path, self.problem, self.line, self.column = fspath(path), problem, line, column
        where = [self.path]
        if line is not None:
            where.append(f"line {line}")
        if column is not None:
            where.append(f"column {column!r}")
        super().__init__(f"{', '.join(where)}: {problem}")


def shown(token: str | bytes) -> str:
    """Quote a piece of a file for an error message, shortened.

    Examples
    --------
    >>> shown(b"abc"), shown("x" * 50)
    ("'abc'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'")
    """
    text = token.decode("utf-8", "replace") if isinstance(token, bytes) else token
    return repr(text if len(text) <= 30 else text[:30] + "...")
