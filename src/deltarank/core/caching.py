"""Attributes that are computed once, without a lock."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:  # noqa: N801
        """`functools.cached_property` as of Python 3.12.

        Before, all instances of a class share a lock: of two fits in threads one would wait, and a
        process forked while one computes would wait for ever.

        Examples
        --------
        >>> class Rows:
        ...     @cached_property
        ...     def total(self):
        ...         print("adding up")
        ...         return 3
        >>> rows = Rows()
        >>> rows.total + rows.total
        adding up
        6
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = self._compute(instance)
            # Into the dictionary, where it hides this descriptor: also of frozen data classes.
            return vars(instance).setdefault(self._name, value)


__all__ = ["cached_property"]
