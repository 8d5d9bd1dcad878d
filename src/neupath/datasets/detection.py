"""What the files of a folder are: node tables, relations, or neither, told by their names and column names alone."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from neupath.datasets.tables import TableFile, stem

_GENERIC = {
    "id", "id1", "id2", "source", "src", "from", "start", "head", "subject", "target", "dst", "dest", "to", "end",
    "tail", "object", "node", "node1", "node2", "node_id", "identifier", "key",
}  # fmt: skip
_ID_COLUMNS = ("id", "node_id", "identifier", "key")
_NAME_COLUMNS = ("name", "title", "label")
_JOINING_WORDS = {"to", "vs", "2"}


@dataclass(frozen=True)
class NodeFile:
    """A table of the nodes of one type: the id column, the name column if any, and the attributes."""

    file: TableFile
    node_type: str
    id: str
    name: str | None
    attributes: list[str]


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


def entity(column: str) -> str | None:
    """Return what an id column is the id of, or nothing where its name doesn't say.

    >>> [entity(c) for c in ("movie_id", "MovieID", "genre", "source", "3")]
    ['movie', 'Movie', 'genre', None, None]
    """
    if column.lower() in _GENERIC or column.isdigit():
        return None
    return re.sub(r"[_\s-]?(?:id|ID|Id)[_\s-]?\d*$", "", column) or None


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


def classify(files: Iterable[TableFile]) -> tuple[list[NodeFile], list[RelationFile], list[str]]:
    """Tell node files from relation files; the third part says of each other file why it was left out."""
    given = list(files)
    types = _Types(given)
    nodes: list[NodeFile] = []
    relations: list[RelationFile] = []
    left_out: list[str] = []
    for file in given:
        if (node_type := types.of_node_file(file)) is not None:
            nodes.append(as_node_file(file, node_type))
        elif (relation := _as_relation(file, types)) is not None:
            relations.append(relation)
        else:
            left_out.append(
                f"{file.path.name} was left out: neither its name nor its first columns "
                f"({', '.join(file.columns[:2])}) say which types it holds; name them in graph.toml"
            )
    return nodes, relations, left_out


def as_node_file(
    file: TableFile, node_type: str, id: str | None = None, name: str | None = None, attributes: list[str] | None = None
) -> NodeFile:
    """Settle the columns of a node file: those given, else the first for the id and one called name for the name."""
    id_column = file.column(id, "id") if id else file.columns[0]
    others = [column for column in file.columns if column != id_column]
    wanted = (*_NAME_COLUMNS, f"{node_type}_name".lower())
    usual = [column for column in others if column.lower() in wanted]
    name_column: str | None
    if name is not None:
        name_column = file.column(name, "name") if name else None
    elif usual:
        name_column = usual[0]
    else:
        name_column = others[0] if others and not file.has_header else None
    rest = [column for column in others if column != name_column]
    chosen = rest if attributes is None else [file.column(column, "attributes") for column in attributes]
    return NodeFile(file, node_type, id_column, name_column, chosen)


def is_relation(file: TableFile) -> bool:
    """Whether a file on its own is clearly one relation: its header names what its first two columns are ids of."""
    named = file.has_header and len(file.columns) >= 2 and all(entity(column) for column in file.columns[:2])
    return named and _as_relation(file, _Types([file])) is not None


def weight_column(file: TableFile, others: Iterable[str]) -> str | None:
    """Return the column called weight, if it is not one of the others."""
    return next((c for c in file.columns if c.lower() == "weight" and c not in set(others)), None)


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[_\-\s.]+", name) if word]


class _Types:
    """The node types that the files of a folder speak of, in one spelling each."""

    def __init__(self, files: list[TableFile]) -> None:
        self._spelling: dict[str, str] = {}
        for file in files:
            if (named := self._own_entity(file)) is not None:
                self._spelling.setdefault(named.lower(), named)
        for file in files:
            words = _words(stem(file.path))
            if len(file.columns) >= 2 and len(words) >= 2 and self.of_node_file(file) is None:
                ends = [
                    entity(column) or word for column, word in zip(file.columns, (words[0], words[-1]), strict=False)
                ]
                if ends[0].lower() in (words[0].lower(), *singulars(words[0])):
                    self._spelling.setdefault(ends[0].lower(), ends[0])
                    if self._ending(ends[1]) is None:
                        self._spelling.setdefault(ends[1].lower(), ends[1])

    @staticmethod
    def _own_entity(file: TableFile) -> str | None:
        """Return the type of a node file whose first column and file name agree: movies with movie_id."""
        first = entity(file.columns[0])
        return first if first is not None and first.lower() in singulars(stem(file.path)) else None

    def of_node_file(self, file: TableFile) -> str | None:
        """Return the type whose nodes a file holds, or nothing."""
        own = self._own_entity(file)
        if own is not None:
            return self.spelled(own)
        called_id = file.has_header and file.columns[0].lower() in _ID_COLUMNS
        if not called_id and file.has_header:
            return None
        candidates = singulars(stem(file.path))
        known = [self._spelling[word] for word in candidates if word in self._spelling]
        if known:
            return known[0]
        return candidates[:2][-1] if called_id and len(_words(stem(file.path))) == 1 else None

    def spelled(self, word: str) -> str:
        return self._spelling.get(word.lower(), word)

    def _ending(self, word: str) -> str | None:
        """Return the known type at the end of a role such as cited_paper."""
        for known, spelling in self._spelling.items():
            if word.lower() == known or re.search(rf"[_\s-]{re.escape(known)}$", word.lower()):
                return spelling
        return None

    def resolve(self, word: str) -> str:
        return self._ending(word) or word

    def is_known(self, word: str) -> bool:
        return self._ending(word) is not None


def is_id(column: str) -> bool:
    """Whether a column says by its name that it holds ids."""
    return bool(re.search(r"(?:_id|Id|ID)$", column))


def _as_relation(file: TableFile, types: _Types) -> RelationFile | None:
    if len(file.columns) < 2:
        return None
    first, second = file.columns[:2]
    name = stem(file.path)
    words = _words(name)
    source, target = entity(first), entity(second)
    if source is None and target is None and len(words) >= 2:
        ends = (words[0], words[-1])
        middle = [word for word in words[1:-1] if word.lower() not in _JOINING_WORDS]
    elif source is None or target is None:
        return None
    elif words and words[0].lower() in (source.lower(), *singulars(source)) and len(words) >= 2:
        ends = (source, target)
        middle = [w for w in words[1:] if w.lower() not in (*singulars(target), *_JOINING_WORDS)]
        middle = [w for w in middle if target.lower() not in singulars(w)]
    elif file.path.is_dir():  # whose name says nothing: it may as well hold copies of other tables
        return None
    elif (types.is_known(source) and types.is_known(target)) or (is_id(first) and is_id(second) and source != target):
        ends, middle = (source, target), []
    else:
        return None
    return RelationFile(
        file,
        types.resolve(ends[0]),
        "_".join(middle) or name,
        types.resolve(ends[1]),
        (first, second),
        weight_column(file, (first, second)),
    )
