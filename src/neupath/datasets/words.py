"""Words in the names of files and columns: what they are the ids of, plurals, and roles such as citing and cited."""

import re
from collections.abc import Iterable

_GENERIC = {
    "id", "id1", "id2", "source", "src", "from", "start", "head", "subject", "target", "dst", "dest", "to", "end",
    "tail", "object", "node", "node1", "node2", "node_id", "identifier", "key", "fromnodeid", "tonodeid",
}  # fmt: skip
_ROLES = {
    "citing", "cited", "citer", "follower", "followee", "following", "followed", "friend", "parent", "child",
    "ancestor", "sibling", "neighbor", "neighbour", "leader", "sender", "receiver", "recipient", "truster", "trustee",
    "caller", "callee", "previous", "next", "first", "second", "left", "right", "other",
}  # fmt: skip
"""What nodes are called that a relation joins with others of their own type."""
_STEM = 4
"""Letters that a role and a verb have in common, as trustor and trusts."""


def entity(column: str) -> str | None:
    """Return what an id column is the id of, or nothing where its name doesn't say.

    >>> [entity(c) for c in ("movie_id", "MovieID", "#Genre", "source", "3")]
    ['movie', 'Movie', 'Genre', None, None]
    """
    word = column.lstrip("# ")  # some mark their header as a comment
    if word.lower() in _GENERIC or word.isdigit():
        return None
    return re.sub(r"[_\s-]?(?:id|ID|Id)[_\s-]?\d*$", "", word) or None


def singulars(word: str) -> list[str]:
    """Return the word and what it may be the plural of, in lower case.

    >>> singulars("Categories")
    ['categories', 'categorie', 'categori', 'category']
    """
    low = word.lower()
    found = [low]
    if low.endswith("s"):
        found.append(low[:-1])
    if low.endswith("es"):
        found.append(low[:-2])
    if low.endswith("ies"):
        found.append(low[:-3] + "y")
    return found


def words_of(name: str) -> list[str]:
    """Cut the name of a file or column into its words."""
    return [word for word in re.split(r"[_\-\s.]+", name) if word]


def is_id(column: str) -> bool:
    """Whether a column says by its name that it holds ids."""
    return bool(re.search(r"(?:_id|Id|ID)$", column))


def is_role(word: str, node_type: str, between: Iterable[str]) -> bool:
    """Whether a column of ids may be called so though a file's name calls them otherwise, with other words between.

    >>> [is_role(word, "paper", ["cites"]) for word in ("papers", "cited_paper", "paper1", "p", "citing", "author")]
    [True, True, True, True, True, False]
    """
    low, kind = word.lower(), node_type.lower()
    if are_alike(low, kind) or kind.startswith(low) or low.endswith(kind) or low in _ROLES:
        return True
    if low.startswith(kind):
        rest = low.removeprefix(kind).strip("_- ")
        return rest.isdigit() or len(rest) <= 1 or rest in _ROLES or rest in _GENERIC
    return any(not are_alike(low, verb.lower()) and low[:_STEM] == verb.lower()[:_STEM] for verb in between)


def are_alike(word: str, other: str) -> bool:
    """Whether two words are one, or one is the plural of the other."""
    return other.lower() in singulars(word) or word.lower() in singulars(other)
