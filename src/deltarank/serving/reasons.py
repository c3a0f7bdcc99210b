"""Why one label stands above another in a row: features, their values, and what they add."""

from typing import Any

from deltarank.explanations import explain
from deltarank.storage.prepared import Model

Line = dict[str, Any]


def reasons(model: Model, x: Any, first: Any, second: Any, top: int) -> list[Line]:
    """Return one line per feature, the most important first; then the rest, the intercept, the sum.

    Values are shown as they were given, None where one is missing.
    """
    names = model.preparation.feature_names()
    explanation = explain(model.ranker, x, first, second, feature_names=range(len(names)))
    lines = [_line(model, names, x, j, adds) for j, adds in explanation.largest(top)]
    rest = explanation.contributions.sum() - sum(line["adds"] for line in lines)
    n_others = len(explanation.largest()) - len(lines)
    if n_others:
        lines.append({"feature": f"({n_others} other features)", "value": "", "adds": float(rest)})
    lines.append({"feature": "(intercept)", "value": "", "adds": explanation.intercept})
    lines.append({"feature": "(difference)", "value": "", "adds": explanation.difference})
    return lines


def _line(model: Model, names: list[str], x: Any, feature: int, adds: float) -> Line:
    value = model.preparation.given(feature, float(x[0, feature]))
    return {"feature": names[feature], "value": value, "adds": adds}
