"""LazyModule: a module that is imported when it is first used, so that a command starts without it."""

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module until one of its attributes is read.

    Parameters
    ----------
    name
        The full name of the module.

    >>> LazyModule("math").floor(2.5)
    2
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        self.__dict__[attribute] = value  # the next time Python finds it there
        return value
