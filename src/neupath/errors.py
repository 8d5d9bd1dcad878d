"""The errors that a user can cause: each says what was given, what is allowed and what to do next."""

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches

_PARAMETER = re.compile(r"‹(\w+)›")


class NeuPathError(Exception):
    """The base of all errors that a user can cause.

    Parameters
    ----------
    message
        The sentence. The name of a parameter stands in it as ‹node_type›, so that each interface can spell it as
        its users write it: `node_type` in Python and over HTTP, `--node-type` on the command line.
    parameter
        The parameter whose value is wrong, where there is one.
    allowed
        The values that would be right, where they can be listed.

    >>> error = NeuPathError("‹k› is 0; use at least 1", parameter="k")
    >>> str(error), error.render(lambda parameter: f"--{parameter}")
    ('k is 0; use at least 1', '--k is 0; use at least 1')

    """

    def __init__(self, message: str, *, parameter: str | None = None, allowed: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.allowed = tuple(allowed)

    def render(self, spell: Callable[[str], str]) -> str:
        """Return the sentence with every parameter as `spell` writes it."""
        return _PARAMETER.sub(lambda match: spell(match[1]), str(self.args[0]))

    def __str__(self) -> str:
        return self.render(str)


class GraphError(NeuPathError):
    """The nodes or edges given do not make a graph."""


class SourceError(NeuPathError):
    """A file or folder cannot be read as a graph."""


class WriteError(NeuPathError):
    """A file or folder cannot be written."""


class SchemaError(NeuPathError):
    """A node type or relation is not in the schema."""


class MetaPathError(NeuPathError):
    """A meta-path does not fit the schema or the measure."""


class NodeError(NeuPathError):
    """A node is unknown, or its name is shared by several nodes."""


class QueryError(NeuPathError):
    """A parameter has a value that makes no sense."""


class MissingExtraError(NeuPathError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, requirement: str) -> None:
        super().__init__(f"this needs {package}, which is not installed; run: pip install '{requirement}'")
        self.package, self.requirement = package, requirement

    def __reduce__(self) -> tuple[object, ...]:
        return MissingExtraError, (self.package, self.requirement)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return the end of a sentence that names the choice spelled most like the word, or nothing.

    >>> did_you_mean("venu", ["author", "paper", "venue"])
    "; did you mean 'venue'?"
    >>> did_you_mean("xyz", ["author", "paper", "venue"])
    ''
    """
    by_folded = {choice.casefold(): choice for choice in choices}
    close = get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return f"; did you mean {by_folded[close[0]]!r}?" if close else ""


def listed(words: Iterable[str], limit: int = 12) -> str:
    """Join words for a sentence, cut with a count when there are many.

    >>> listed(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    items = list(words)
    shown = ", ".join(items[:limit])
    more = len(items) - limit
    return f"{shown} and {more:,} more" if more > 0 else shown


def first_line(error: Exception) -> str:
    """Return the first line of a library's message."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
