"""Leave modules out of the doctests whose library is not installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") else ["src/deltarank/torch.py"]
