"""Tell node tables from relations, by the names of files and columns alone."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

from neupath.io.sources import NodeSource, Selection, existing
from neupath.io.tables import TableFile, stem

# ---- Words in the names of files and columns -----------------------------------------------------
_GENERIC = {
    "id", "id1", "id2", "source", "src", "from", "start", "head", "subject", "target", "dst", "dest", "to", "end",
    "tail", "object", "node", "node1", "node2", "node_id", "identifier", "key", "fromnodeid", "tonodeid",
}  # fmt: skip
_ROLES = {
    "citing", "cited", "citer", "follower", "followee", "following", "followed", "friend", "parent", "child",
    "ancestor", "sibling", "neighbor", "neighbour", "leader", "sender", "receiver", "recipient", "truster", "trustee",
    "caller", "callee", "previous", "next", "first", "second", "left", "right", "other",
}  # fmt: skip
"""Roles of nodes in a relation of a type to itself."""
_STEM = 4
"""How many letters a role and a verb must share, as trustor and trusts do."""


def entity(column: str) -> str | None:
    """Return the entity that an id column names, or None.

    >>> [entity(c) for c in ("movie_id", "MovieID", "#Genre", "source", "3")]
    ['movie', 'Movie', 'Genre', None, None]
    """
    word = column.lstrip("# ")  # the header may be commented
    if word.lower() in _GENERIC or word.isdigit():
        return None
    return re.sub(r"[_\s-]?(?:id|ID|Id)[_\s-]?\d*$", "", word) or None


def singulars(word: str) -> list[str]:
    """Return the word and the singulars that it may be the plural of, in lower case.

    >>> singulars("Categories")
    ['categories', 'categorie', 'categori', 'category']
    """
    low = word.lower()
    endings = (("s", ""), ("es", ""), ("ies", "y"))
    return [low, *(low.removesuffix(plural) + singular for plural, singular in endings if low.endswith(plural))]


def split_words(name: str) -> list[str]:
    """Split the name of a file or column into words."""
    return [word for word in re.split(r"[_\-\s.]+", name) if word]


def is_id(column: str) -> bool:
    """Whether the name of a column says that it holds ids."""
    return bool(re.search(r"(?:_id|Id|ID)$", column))


def is_role(word: str, node_type: str, between: Iterable[str]) -> bool:
    """Whether a column called `word` may hold ids of `node_type`, given the words between the types of a file's name.

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
    """Whether two words are the same, or one is the plural of the other."""
    return other.lower() in singulars(word) or word.lower() in singulars(other)


# ---- Node files and relation files ---------------------------------------------------------------
_ID_COLUMNS = ("id", "node_id", "identifier", "key")
_NAME_COLUMNS = ("name", "title", "label")
_JOINING_WORDS = {"to", "vs", "2"}


@dataclass(frozen=True)
class RelationFile:
    """A table of the edges of one relation: its two id columns, and the weight column if any."""

    file: TableFile
    source: str
    name: str
    target: str
    columns: tuple[str, str]
    weight: str | None
    directed: bool = True


def classify(files: Iterable[TableFile]) -> tuple[list[NodeSource], list[RelationFile], list[str]]:
    """Tell node files from relation files; the third list has a note on each other file."""
    all_files = list(files)
    types = _TypeNames(all_files)
    nodes, relations, left_out = [], [], []
    for file in all_files:
        if (node_type := types.of_node_file(file)) is not None:
            nodes.append(select_nodes(file, node_type))
        elif (relation := _as_relation(file, types)) is not None:
            relations.append(relation)
        else:
            left_out.append(
                f"{file.path.name} was left out: neither its name nor its first columns "
                f"({', '.join(file.columns[:2])}) name node types; name them in graph.toml"
            )
    return nodes, relations, left_out


def select_nodes(
    file: TableFile, node_type: str, id: str | None = None, name: str | None = None, attributes: list[str] | None = None
) -> NodeSource:
    """Choose the columns of a node file: by default the first for the id and one called name for the name."""
    id_column = file.column(id, "id") if id else file.columns[0]
    others = [column for column in file.columns if column != id_column]
    usual_names = (*_NAME_COLUMNS, f"{node_type}_name".lower())
    name_column = next((column for column in others if column.lower() in usual_names), None)
    if name is not None:
        name_column = file.column(name, "name") if name else None
    elif name_column is None and others and not file.has_header:
        name_column = others[0]
    if attributes is None:
        chosen = [column for column in others if column != name_column]
    else:
        chosen = [file.column(column, "attributes") for column in attributes]
    return NodeSource(node_type, Selection(file, existing(id=id_column, name=name_column), chosen))


def is_relation(file: TableFile) -> bool:
    """Whether a single file is clearly one relation: its header names two entities, or it has only two columns."""
    named = file.has_header and len(file.columns) >= 2 and all(entity(column) for column in file.columns[:2])
    return (named or len(file.columns) == 2) and _as_relation(file, _TypeNames([file])) is not None


def weight_column(file: TableFile, others: Iterable[str]) -> str | None:
    """Return the column called weight, unless it is one of the others."""
    return next((c for c in file.columns if c.lower() == "weight" and c not in set(others)), None)


class _TypeNames:
    """The node types that the files of a folder name, each in one spelling."""

    def __init__(self, files: list[TableFile]) -> None:
        self._spelling: dict[str, str] = {}
        stems = [stem(file.path) for file in files]
        compound = [file for file in files if len(split_words(stem(file.path))) >= 2]
        self._learn(map(self._own_entity, files))
        # a type of several words must be known before the names of relations are split into types
        self._learn(_mentioned(file, stems) for file in compound)
        for file in compound:
            if len(file.columns) >= 2 and self.of_node_file(file) is None:
                self._learn_ends(file)
        self._learn(_mentioned(file, stems) for file in files if self._spelled_as([stem(file.path)]) is None)

    def _learn(self, names: Iterable[str | None]) -> None:
        for name in names:
            if name is not None:
                self._spelling.setdefault(name.lower(), name)

    def _learn_ends(self, file: TableFile) -> None:
        """Learn the types of a relation whose name begins like its first column."""
        source, _, target = self.named_ends(stem(file.path))
        twice = source.lower() == target.lower() and not self.columns_differ(file)
        first, second = (
            end if twice else entity(column) or end for column, end in zip(file.columns, (source, target), strict=False)
        )
        if first.lower() in singulars(source):
            self._learn([first])
            self._learn([None if self.ending(second) else second])

    @staticmethod
    def _own_entity(file: TableFile) -> str | None:
        """Return the type of a node file whose first column and file name agree: movies with movie_id."""
        first = entity(file.columns[0])
        if first is None:
            return None
        ours, words = split_words(first.lower()), split_words(stem(file.path))
        alike = len(ours) == len(words) and all(our in singulars(word) for our, word in zip(ours, words, strict=True))
        return first if alike else None

    def named_ends(self, name: str) -> tuple[str, list[str], str]:
        """Return the types at the two ends of a file's name, and the words between; a type may have several words."""
        words = split_words(name)
        heads = max((n for n in range(1, len(words)) if self._spelled_as(words[:n])), default=1)
        tails = max((n for n in range(1, len(words) - heads + 1) if self._spelled_as(words[-n:])), default=1)
        source, target = (self._spelled_as(end) or "_".join(end) for end in (words[:heads], words[-tails:]))
        between = [word for word in words[heads : len(words) - tails] if word.lower() not in _JOINING_WORDS]
        return source, between, target

    def columns_differ(self, file: TableFile) -> bool:
        """Whether the first two columns hold ids of other types than those in the file's name.

        A role such as cited is not another type. Any other word is one, if both columns are called ids.
        """
        source, between, target = self.named_ends(stem(file.path))
        ends = zip(map(entity, file.columns[:2]), (source, target), strict=True)
        others = [word for word, end in ends if word is not None and self._is_other(word, end, between)]
        named = (self._spelled_as([word]) or any(are_alike(word, verb) for verb in between) for word in others)
        return any(named) or (bool(others) and all(map(is_id, file.columns[:2])))

    def _is_other(self, word: str, end: str, between: list[str]) -> bool:
        if len(word) == 1 or are_alike(word, end):
            return False
        return self._spelled_as([word]) is not None or not is_role(word, end, between)

    def _spelled_as(self, words: list[str]) -> str | None:
        return next((self._spelling[w] for w in singulars("_".join(words)) if w in self._spelling), None)

    def of_node_file(self, file: TableFile) -> str | None:
        """Return the type whose nodes a file holds, or None."""
        own = self._own_entity(file)
        if own is not None:
            return self._spelling.get(own.lower(), own)
        called_id = file.has_header and file.columns[0].lower() in _ID_COLUMNS
        if not called_id and file.has_header:
            return None
        candidates = singulars(re.sub(r"^id_", "", stem(file.path).lower()))
        known = next((self._spelling[word] for word in candidates if word in self._spelling), None)
        if known is not None:
            return known
        return candidates[:2][-1] if called_id and len(split_words(stem(file.path))) == 1 else None

    def ending(self, word: str) -> str | None:
        """Return the known type at the end of a role such as cited_paper."""
        for known, spelling in self._spelling.items():
            if word.lower() == known or re.search(rf"[_\s-]{re.escape(known)}$", word.lower()):
                return spelling
        return None


def _mentioned(file: TableFile, stems: Iterable[str]) -> str | None:
    """Return the type of a node table whose name begins or ends the name of another file, as spelled there."""
    if file.columns[0].lower() not in _ID_COLUMNS or any(is_id(column) for column in file.columns[1:]):
        return None
    for name, other in product(singulars(stem(file.path)), stems):
        if other.lower().startswith(f"{name}_"):
            return other[: len(name)]
        if other.lower().endswith(f"_{name}"):
            return other[-len(name) :]
    return None


def _name_decides(file: TableFile, types: _TypeNames) -> bool:
    """Whether the file's name, and not its columns, decides which types it joins.

    It does if the columns name no entity, if the name has one type twice, as in paper_cites_paper, or two known types
    while the columns name none, or if the columns are abbreviations of the types; but never if the columns are ids of
    other types.
    """
    columns = file.columns[:2]
    entities = [entity(column) for column in columns]
    if entities == [None, None]:
        return True
    if types.columns_differ(file):
        return False
    source, _, target = types.named_ends(stem(file.path))
    if source.lower() == target.lower():
        return True
    if all(end.lower().startswith(column.lower()) for end, column in zip((source, target), columns, strict=True)):
        return True
    return all(map(types.ending, (source, target))) and not any(word and types.ending(word) for word in entities)


def _as_relation(file: TableFile, types: _TypeNames) -> RelationFile | None:
    if len(file.columns) < 2:
        return None
    first, second = file.columns[:2]
    name = stem(file.path)
    words = split_words(name)
    source, target = entity(first), entity(second)
    if len(words) >= 2 and _name_decides(file, types):
        begin, middle, end = types.named_ends(name)
        ends = (begin, end)
    elif source is None or target is None:
        return None
    elif words and words[0].lower() in (source.lower(), *singulars(source)) and len(words) >= 2:
        ends = (source, target)
        ignored = (*singulars(target), *split_words(target.lower()), *_JOINING_WORDS)
        middle = [w for w in words[1:] if w.lower() not in ignored and target.lower() not in singulars(w)]
    elif file.path.is_dir():  # its name says nothing, and it may hold copies of other tables
        return None
    elif (types.ending(source) and types.ending(target)) or (is_id(first) and is_id(second) and source != target):
        ends, middle = (source, target), []
    else:
        return None
    start, finish = (types.ending(end) or end for end in ends)
    weight = weight_column(file, (first, second))
    return RelationFile(file, start, "_".join(middle) or name, finish, (first, second), weight)
