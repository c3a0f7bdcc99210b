"""Why one label stands above another: what each feature adds to the difference of their scores."""

from deltarank.explanations.explaining import explain, is_explainable, top_features
from deltarank.explanations.explanation import Explanation

__all__ = ["Explanation", "explain", "is_explainable", "top_features"]
