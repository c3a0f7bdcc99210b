"""Label distributions of three labels on which pairwise surrogates rank wrongly (section 4)."""

from deltarank.theory.distribution import LabelDistribution

EXAMPLES: dict[str, LabelDistribution] = {
    "A": LabelDistribution({"100": 0.25, "110": 0.50, "011": 0.20, "001": 0.05}),
    "B": LabelDistribution({"100": 0.27, "001": 0.30, "110": 0.40, "011": 0.03}),
}
