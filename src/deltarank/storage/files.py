"""A model as a file, whatever form it was given in."""

import shutil
from os import PathLike
from pathlib import Path
from typing import Any

from deltarank.storage.models import save
from deltarank.storage.prepared import Model


def as_model_file(model: Any, target: Path) -> Path:
    """Write a ranker, a pipeline, a `Model` or a copy of a model file to a path; return it."""
    if isinstance(model, str | PathLike):
        shutil.copyfile(model, target)
    elif isinstance(model, Model):
        model.save(target)
    else:
        save(model, target)
    return target
