"""LazyMapping: values that are made when they are first asked for."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping
from threading import RLock
from typing import TypeVar
from weakref import WeakValueDictionary

Key = TypeVar("Key")
Value = TypeVar("Value")


class LazyMapping(Mapping[Key, Value]):
    """Values that are made when they are first asked for, each once; one that cannot be made is tried again.

    Parameters
    ----------
    keys
        The keys; of a mapping, its keys.
    make
        Returns the value of a key.
    weak
        Whether a value is forgotten when nobody else has it any more.

    >>> squares = LazyMapping([2, 3], lambda number: number**2)
    >>> squares[3], dict(squares)
    (9, {2: 4, 3: 9})
    """

    def __init__(self, keys: Iterable[Key], make: Callable[[Key], Value], *, weak: bool = False) -> None:
        self.keys_: Collection[Key] = keys if isinstance(keys, Mapping) else dict.fromkeys(keys)
        self._make: Callable[[Key], Value] | None = make
        self._made: MutableMapping[Key, Value] = WeakValueDictionary() if weak else {}
        self._is_weak, self._lock = weak, RLock()

    def __getitem__(self, key: Key) -> Value:
        try:
            return self._made[key]
        except KeyError:
            if key not in self.keys_:
                raise
        with self._lock:
            if key in self._made:
                return self._made[key]
            assert self._make is not None
            value = self._made[key] = self._make(key)
            if not self._is_weak and len(self._made) == len(self.keys_):
                self._make = None  # what it makes them of is not needed any more
            return value

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys_)

    def __len__(self) -> int:
        return len(self.keys_)

    def __contains__(self, key: object) -> bool:
        return key in self.keys_
