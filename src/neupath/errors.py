"""What can go wrong, each as one sentence that says what was given, what is allowed and what to do next."""

from collections.abc import Iterable
from difflib import get_close_matches


class NeuPathError(Exception):
    """Base of every error a user can cause; the command line prints it as one line and exits with 2."""


class GraphError(NeuPathError):
    """The nodes or edges given do not make a graph."""


class SourceError(NeuPathError):
    """A file or folder cannot be read as a graph."""


class WriteError(NeuPathError):
    """A file or folder cannot be written."""


class SchemaError(NeuPathError):
    """A node type or relation is not in the schema."""


class MetaPathError(NeuPathError):
    """A meta-path does not fit the schema, or not the measure that was asked."""


class NodeError(NeuPathError):
    """A node is unknown, or its name is shared by several nodes."""


class QueryError(NeuPathError):
    """A search was asked with a value that makes no sense."""


class MissingExtraError(NeuPathError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, requirement: str) -> None:
        super().__init__(f"this needs {package}, which is not installed; run: pip install '{requirement}'")


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Say which of the choices is spelled most like the word, as the end of a sentence, or say nothing.

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
    given = list(words)
    shown = ", ".join(given[:limit])
    more = len(given) - limit
    return f"{shown} and {more:,} more" if more > 0 else shown


def first_line(error: Exception) -> str:
    """Return the first line of what a library says, which often says too much."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
