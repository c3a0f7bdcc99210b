"""Model files: one file, no code in it, checked before it is used."""

from deltarank.storage.models import load, load_with_extra, save
from deltarank.storage.tensors import ModelFileError

__all__ = ["ModelFileError", "load", "load_with_extra", "save"]
