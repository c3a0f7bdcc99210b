"""Leave out of the doctests modules whose library is not installed, and what Sphinx runs."""

from importlib.util import find_spec

_NEEDS = {
    "torch": [
        "src/deltarank/torch.py",
        "src/deltarank/passes/device.py",
        "src/deltarank/passes/device_layout.py",
        "src/deltarank/passes/device_products.py",
        "src/deltarank/passes/device_rows.py",
        "src/deltarank/passes/device_small.py",
        "src/deltarank/passes/device_stumps.py",
        "src/deltarank/solvers/device_lbfgs.py",
        "src/deltarank/solvers/device_newton.py",
    ],
    "triton": [
        "src/deltarank/kernels/device_cells.py",
        "src/deltarank/kernels/device_histograms.py",
    ],
    "fastapi": [
        "src/deltarank/serving/app.py",
        "src/deltarank/serving/limits.py",
        "docs/deploy.md",
    ],
    "onnxruntime": ["src/deltarank/storage/onnx_export.py", "docs/deploy.md"],
}
_SITE = ["docs/conf.py", "docs/_ext", "docs/_build", "docs/generated"]
_absent = [file for name, files in _NEEDS.items() if not find_spec(name) for file in files]
# Two modules of one name cannot be searched for doctests; there are none in them.
_SETTINGS = ["tests/conftest.py", "tests/abuse/conftest.py"]
collect_ignore = [*_SITE, *_SETTINGS, *_absent]
