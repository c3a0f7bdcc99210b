"""Model files: one file, no code in it, checked before it is used."""

from deltarank.storage.models import ModelFileError, load, load_with_extra, save

__all__ = ["ModelFileError", "load", "load_with_extra", "save"]
