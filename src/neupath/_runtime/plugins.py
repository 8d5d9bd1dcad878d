"""Plug-ins: what installed packages add to a registry, by entry points; they are imported when they are needed."""

import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from neupath.errors import PluginError, PluginWarning, first_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*")


class Plugins:
    """The entry points of one group, loaded together when a name is not built in, or when a list is asked for.

    A plug-in that cannot be used is left out with a `PluginWarning`, and asking for it by name raises a `PluginError`.

    Parameters
    ----------
    group
        The group of entry points, such as "neupath.measures".
    check
        Takes the name and the object of an entry point, and returns what is wrong with it, or None.
    built_in
        Names that are taken, which a plug-in cannot replace.

    >>> Plugins("neupath.none", lambda name, value: None, ["pathsim"]).find("hubsim") is None
    True

    """

    def __init__(self, group: str, check: Callable[[str, Any], str | None], built_in: Collection[str]) -> None:
        self.group, self.check, self.built_in = group, check, frozenset(built_in)
        self._lock, self._is_loaded, self._is_loading = RLock(), False, False
        self._values: dict[str, Any] = {}
        self._packages: dict[str, str] = {}
        self._problems: dict[str, str] = {}

    def load(self) -> Mapping[str, Any]:
        """Import all plug-ins of the group once, and return them by name."""
        if self._is_loaded:
            return self._values
        with self._lock:
            if self._is_loaded or self._is_loading:  # a plug-in that is being imported may ask for the list
                return self._values
            from importlib.metadata import entry_points  # a search by a built-in measure starts without it

            self._is_loading = True
            try:
                sentences = [self._add(entry) for entry in sorted(entry_points(group=self.group), key=_order)]
            finally:
                self._is_loading = False
            self._is_loaded = True
        for sentence in filter(None, sentences):
            warnings.warn(PluginWarning(sentence), stacklevel=2)
        return self._values

    def find(self, name: str) -> Any | None:
        """Return the plug-in of a name, or None; raise a PluginError if it cannot be used."""
        if name in self.built_in:
            return None
        value = self.load().get(name)
        if value is None and name in self._problems:
            raise PluginError(self._problems[name])
        return value

    def package_of(self, name: str) -> str:
        """Return the package of a plug-in, with its version."""
        return self._packages[name]

    def _add(self, entry: "EntryPoint") -> str | None:
        """Load one entry point; return a sentence if it cannot be used."""
        name, package = entry.name, _package_of(entry)
        where = f"the package {package} offers {name!r} for {self.group}"
        if name in self.built_in or name in self._values:
            owner = self._packages.get(name)
            taken = f"the package {owner} has it" if owner else "it is built in"
            return f"{where}, a name that is taken: {taken}, and that one is used; rename or uninstall the other"
        try:
            value = entry.load()
            problem = self.check(name, value) if _NAME.fullmatch(name) else "a name has lower-case letters, digits, _.-"
        except Exception as error:  # a package may fail in any way
            value, problem = None, f"{type(error).__name__}: {first_line(error)}"
        if problem is None:
            self._values[name], self._packages[name] = value, package
            return None
        sentence = f"{where}, which cannot be used: {problem}; update or uninstall {package.partition(' ')[0]}"
        self._problems.setdefault(name, sentence)
        return sentence


class Registry(MutableMapping[str, T]):
    """What is known by name: the built-in entries first, then those of plug-ins.

    Parameters
    ----------
    built_in
        The entries that come with neupath. Looking one up imports no plug-in.
    plugins
        What installed packages add.
    belongs
        Which of these plug-ins are of this registry, where two share a group.

    >>> numbers = Registry({"one": 1}, Plugins("neupath.none", lambda name, value: None, ["one"]))
    >>> numbers["one"], list(numbers), "two" in numbers
    (1, ['one'], False)

    """

    def __init__(
        self, built_in: Mapping[str, T], plugins: Plugins, belongs: Callable[[Any], bool] = lambda _: True
    ) -> None:
        self.built_in, self._plugins, self._belongs = dict(built_in), plugins, belongs

    def __getitem__(self, name: str) -> T:
        if name in self.built_in:
            return self.built_in[name]
        plugin: T | None = self._plugins.find(name)
        if plugin is None or not self._belongs(plugin):
            raise KeyError(name)
        return plugin

    def __setitem__(self, name: str, value: T) -> None:
        self.built_in[name] = value

    def __delitem__(self, name: str) -> None:
        del self.built_in[name]

    def __iter__(self) -> Iterator[str]:
        added = [name for name, value in self._plugins.load().items() if self._belongs(value)]
        return iter([*self.built_in, *added])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def package_of(self, name: str) -> str:
        """Return the package that a plug-in is from, with its version."""
        return self._plugins.package_of(name)


def _package_of(entry: "EntryPoint") -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value


def _order(entry: "EntryPoint") -> tuple[str, str]:
    return _package_of(entry), entry.name
