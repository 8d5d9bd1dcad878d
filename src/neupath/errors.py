"""The errors that a user can cause: each says what was given, what is allowed and what to do next."""

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

_PARAMETER = re.compile(r"""(?<!\w)(['"])(?:(?!\1)[^\\]|\\.)*\1|‹(\w+)›""", re.DOTALL)
"""A quoted text, which a user may have written, or the name of a parameter."""


_PASSWORD = re.compile(
    r"(?P<url>(?<!http)(?<!https):/{1,2}[^\s/?#:@]*):.*@"  # to the last @: it may have characters that belong encoded
    r"|(?P<page>https?:/{1,2}[^\s/?#:@]*):(?!\d+/)\S*@"  # ids of RDF look like this, too, with a port
    r"|(?P<parameter>[?&]\w*(?:pass|secret|token)\w*=)[^&\s'\"]*",
    re.IGNORECASE,
)
"""A password in a URL, before the host or as a parameter."""


class NeuPathError(Exception):
    """The base of all errors that a user can cause.

    Parameters
    ----------
    message
        The sentence; passwords of URLs in it are hidden. The name of a parameter stands in it as ‹node_type›, so that
        each interface can spell it as its users write it: `node_type` in Python and over HTTP, `--node-type` on the
        command line. Within quotes it is left as it is, because there it is the text of a user.
    parameter
        The parameter whose value is wrong, where there is one.
    allowed
        The values that would be right, where they can be listed.

    >>> error = NeuPathError("‹k› is 0; use at least 1", parameter="k")
    >>> str(error), error.render(lambda parameter: f"--{parameter}")
    ('k is 0; use at least 1', '--k is 0; use at least 1')
    >>> str(NeuPathError(f"no node {'‹k›'!r}"))
    "no node '‹k›'"

    """

    def __init__(self, message: str, *, parameter: str | None = None, allowed: Iterable[str] = ()) -> None:
        super().__init__(hide_password(message))
        self.parameter = parameter
        self.allowed = tuple(allowed)

    def render(self, spell: Callable[[str], str]) -> str:
        """Return the sentence with every parameter as `spell` writes it."""
        return spell_parameters(str(self.args[0]), spell)

    def __str__(self) -> str:
        return self.render(str)


def spell_parameters(text: str, spell: Callable[[str], str]) -> str:
    """Return a text with each ‹parameter› outside quotes as `spell` writes it."""
    return _PARAMETER.sub(lambda match: spell(match[2]) if match[2] else match[0], text)


class SourceWarning(UserWarning):
    """Says once how a source was read: what was left out, and what was decided by rule.

    Parameters
    ----------
    source
        What was read.
    notes
        What there is to say, such as the notes of a graph.
    advice
        Where else to read or decide it.

    With its whole text alone it is made again, as libraries do that hold warnings back for a while.
    """

    def __init__(
        self,
        source: str,
        notes: Sequence[str] | None = None,
        advice: str = "a graph.toml decides otherwise; HIN.notes has this list",
    ) -> None:
        self.source, self.notes, self.advice = source, tuple(notes or ()), advice
        if notes is None:
            super().__init__(source)
            return
        lines = "\n".join(f"  - {note}" for note in self.notes)
        super().__init__(
            f"how {source} was read:\n{lines}\n({advice}, and "
            f'warnings.simplefilter("ignore", neupath.errors.SourceWarning) hides it)'
        )

    def __reduce__(self) -> tuple[object, ...]:
        return SourceWarning, (self.source, self.notes or None, self.advice)


class PluginWarning(UserWarning):
    """Says which plug-in of an installed package is left out, and why."""


class PluginError(NeuPathError):
    """A plug-in of an installed package cannot be used."""


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

    query: str | None = None
    """What no node is called, where that is the error."""


class QueryError(NeuPathError):
    """A parameter has a value that makes no sense."""


class OtherNodesError(QueryError):
    """A learned scorer knows each node by features of its own, and a graph has other nodes."""


class NotEnoughMemoryError(NeuPathError, MemoryError):
    """Some work would take more memory than is free."""


class MissingExtraError(NeuPathError):
    """An optional dependency is not installed; the command that it names works from where neupath was installed."""

    def __init__(self, package: str, requirement: str) -> None:
        checkout = Path(__file__).parents[2]
        is_own = requirement.startswith("neupath[") and (checkout / "pyproject.toml").is_file()
        command = f"-e '{checkout}{requirement.removeprefix('neupath')}'" if is_own else f"'{requirement}'"
        super().__init__(f"this needs {package}, which is not installed; run: pip install {command}")
        self.package, self.requirement = package, requirement

    def __reduce__(self) -> tuple[object, ...]:
        return MissingExtraError, (self.package, self.requirement)


def hide_password(text: str) -> str:
    """Return a text in which the passwords of URLs are stars.

    >>> hide_password("cannot open postgresql://ann:s3cret@host/shop?sslpassword=x")
    'cannot open postgresql://ann:***@host/shop?sslpassword=***'
    """

    def hide(match: re.Match[str]) -> str:
        return f"{match['parameter']}***" if match["parameter"] else f"{match['url'] or match['page']}:***@"

    return _PASSWORD.sub(hide, text)


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


_DASHES = {
    "\N{EN DASH}": "an en dash", "\N{EM DASH}": "an em dash", "\N{MINUS SIGN}": "a minus sign",
    "\N{HYPHEN}": "a hyphen", "\N{NON-BREAKING HYPHEN}": "a non-breaking hyphen",
}  # fmt: skip


def dash_hint(text: str) -> str:
    """Return the end of a sentence on the first dash in a text that is not the one of the keyboard, or nothing.

    >>> dash_hint("author\N{EN DASH}paper")
    "; character 7, '\N{EN DASH}', is an en dash: write a plain -"
    """
    at = next((at for at, character in enumerate(text) if character in _DASHES), None)
    return "" if at is None else f"; character {at + 1}, {text[at]!r}, is {_DASHES[text[at]]}: write a plain -"


def listed(words: Iterable[str], limit: int = 12) -> str:
    """Join words for a sentence, cut with a count when there are many.

    >>> listed(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    items = list(words)
    shown = ", ".join(items[:limit])
    more = len(items) - limit
    return f"{shown} and {more:,} more" if more > 0 else shown


def excerpt(text: str, at: int) -> str:
    """Return a text, or of a long one the part around a position.

    >>> len(excerpt("0123456789" * 20, 100)), excerpt("0123456789", 5)
    (102, '0123456789')
    """
    if len(text) <= 120:
        return text
    first, last = max(0, at - 50), at + 50
    return ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")


def first_line(error: Exception) -> str:
    """Return the first line of a library's message."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
