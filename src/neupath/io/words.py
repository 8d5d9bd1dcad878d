"""The vocabulary of tables: what people call ids, names, types, ends and relations, and what a name says of its column.

One list for each meaning. Where two lists differ on purpose, a comment says why.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from neupath.io.text_files import unmarked


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# ---- What columns of a table, or keys of a record, are called, the likelier first ----------------
IDS = ("id", "node_id", "identifier", "key")
"""A node's own id."""
RECORD_IDS = ("id", "_id", "@id", "ID", "Id", "identifier", "uid", "uri", "key")
"""That of a JSON record: more words count than in a table, as a record without an id is no node."""
KEYS = ("asin", "isbn", "sku", "isbn10", "isbn13", "issn", "doi", "orcid", "pmid", "ean", "upc", "uuid", "guid", "mbid")
"""Columns of ids that have a name of their own."""
OTHER_IDS = ("email", "e_mail", "mail", "code", "username", "login", "slug", "url")
"""Columns that may identify nodes, besides those that are called ids."""
NAMES = ("display_name", "name", "title", "full_name", "fullname", "primary_title", "primarytitle", "label")
"""What people call a node."""
TYPES = ("type", "kind", "node_type", "category", "class")
"""The type of a node."""
RECORD_TYPES = ("category", "kind", "type", "node_type", "labels", "label")
"""That of a JSON record: Biolink's records have a `type` beside their category, and Neo4j's have labels."""
NETWORK_TYPES = ("node_type", "ntype", "kind", "labels")
"""That of a node of NetworkX, besides `type`: its other attributes, such as a class, describe it more often."""
RELATIONS = (
    "predicate", "relation", "metaedge", "edge_type", "relation_type", "relationship", "relationship_type", "rel",
    "rel_type", "interaction", "interaction_type", "edge_label", "relation_name", "link_type", "display_relation",
)  # fmt: skip
"""The relation of an edge."""
WEAK_RELATIONS = ("type", "kind", "label")
"""Names of relations, but also of attributes of edges."""
NETWORK_RELATIONS = ("edge_type", "etype", "type", "predicate", "kind")
"""The relation of an edge of NetworkX, besides `relation`: as with types, other attributes describe the edge."""
END_PAIRS = (
    ("head", "tail"), ("subject", "object"), ("source", "target"), ("start", "end"), ("from", "to"), ("src", "dst"),
    ("src", "dest"), ("from_node", "to_node"), ("source_node", "target_node"), ("entity1", "entity2"),
    ("entity_1", "entity_2"), ("node1", "node2"), ("node_1", "node_2"),
)  # fmt: skip
"""The two ends of an edge."""
WEAK_END_PAIRS = (("left", "right"), ("x", "y"), ("u", "v"), ("h", "t"), ("s", "o"))
"""Ends in a table; in a record, and in its first row, they are more often something else, such as coordinates."""
LETTER_RELATIONS = {"x": (), "u": (), "h": ("r",), "s": ("p",)}
"""Letters are ends only beside the letter of a relation, or if several columns begin with them: x_id, x_type."""
END_ROLES = {
    "id": ("id", "", "identifier", "curie", "iri", "uri", "key", "code", "node_id", "node", "entity", "index", "idx"),
    "type": ("type", "category", "kind", "class", "node_type", "entity_type", "semantic_type", "types", "categories"),
    "name": ("name", "title", "display_name", "label", "preferred_name"),
}
"""What a column of an end is, by what follows the word of the end."""
_ENDS = frozenset(word for pair in END_PAIRS for word in pair)
EDGE_WORDS = _ENDS.union(RELATIONS)
HEADER_WORDS = _ENDS | _words("id name title type kind weight relation predicate metaedge entity")
"""Words of a first line that is a header; other names of relations could be relations of a table without one."""
ROLES_IN_TABLES = {
    "id": (":id", *IDS, "entity"), "name": (*NAMES[:3], "node_name", "label"), "type": (*TYPES, ":label"),
    "label": ("labels", "label"), "relation": (*RELATIONS, ":type", *WEAK_RELATIONS),
    "source": (*(source for source, _ in END_PAIRS), "source_id", "start_id", ":start_id"),
    "target": (*(target for _, target in END_PAIRS), "target_id", "end_id", ":end_id"),
}  # fmt: skip
"""What the columns of a table of all nodes and of one of all edges are called."""
RECORD_ENDS = (
    *((f"{source}{suffix}", f"{target}{suffix}") for source, target in END_PAIRS for suffix in ("_id", "")),
    ("_from", "_to"),
)

# ---- What tables are called ----------------------------------------------------------------------
NODE_TABLES = ("nodes", "node", "vertices", "entities")
EDGE_TABLES = ("edges", "edge", "links", "relations", "triples")
WEAK_EDGE_TABLES = ("link", "relationships")
"""Also names of one relation, as in user_item_link."""
SPLIT_TABLES = ("train", "valid", "validation", "val", "dev", "test")
"""Parts of one table of triples."""
WRAPPERS = _words(
    "data results items records rows docs hits elements content export dump part output file graph train valid test "
    "full sample"
) | {""}
"""Names of files and keys that say nothing of the records below them. A table called items does hold items."""
NOT_TYPES = _words("""
    graph graphs network networks net kg edge edges edgelist list data dataset table file combined links my the new old
    full small large sample final raw clean cleaned processed train test valid validation val dev all part ungraph
    directed undirected soc web ca com p2p road wiki cit ego as bio social triples triplets facts export dump output
    input result results copy v1 v2 v3 main original unnamed untitled sheet1 sheet out db csv tsv txt backup backups
    archive tmp temp
""")
"""Words in the names of tables that name no type of nodes."""
EVENTS = _words("""
    rating ratings review reviews email mail msg message messages temporal time times plays clicks purchases
    interactions events log logs transactions sessions history indicator labels label attributes features scores trust
    sign signed
""")
"""Words that name what an edge is, or its attributes, rather than a type at its end."""
JOINING_WORDS = ("to", "vs", "2")

# ---- What words in names mean --------------------------------------------------------------------
GENERIC = _ENDS | _words("id id1 id2 node node_id identifier key fromnodeid tonodeid")
"""Names of columns that name no entity."""
VAGUE = (_ENDS | {"node"}) - {"subject", "object"}
"""Words that name no entity even before an id, as in source_id; subject_id may be that of a subject."""
ROLES = _words("""
    citing cited citer follower followee following followed friend parent child ancestor sibling neighbor neighbour
    leader sender receiver recipient truster trustee caller callee previous next first second left right other manager
    supervisor mentor spouse partner predecessor successor superclass subclass super sub
""")
"""Roles of nodes in a relation of a type to itself."""
LIKE_ITSELF = _words("reference citation cite related similar alike")
"""In the keys of records, also words for nodes of the record's own type."""
TARGET_ROLES = _words(
    "cited followee followed trustee trusted callee receiver recipient next second right successor other"
)
"""Roles that an edge leads to."""
MEASURES = _words("""
    weight weights rating ratings score scores count counts n num number value amount quantity qty price timestamp time
    date datetime year month day created updated created_at updated_at ts index rank position order confidence
    probability age stars freq frequency strength similarity distance length size row row_number unixtime plays
    playcount play_count views billing minutes duration
""")
"""Names of columns that measure something and are no ends of edges."""
TIMES = ("time", "date", "year", "month", "day", "created", "updated", "ts")
IDENTIFIERS = _words("""
    imdb tmdb tvdb isbn isbn10 isbn13 issn doi orcid wikidata wikipedia freebase mesh umls omim ncbi entrez ensembl
    uniprot chebi drugbank kegg pubchem chembl pmid pmcid pubmed arxiv mag viaf gnd isni ean upc gtin sku uuid guid
    external ext legacy hash musicbrainz mbid spotify goodreads twitter facebook instagram linkedin grid ror dblp acm
    s2 corpus inchi cas hgnc row record
""")
"""Systems of identifiers: imdb_id is another id of the same node, not a node."""
KINDS = _words(
    "type kind category class label status state gender sex language lang flag description text comment note notes"
)
"""Columns that describe the first one rather than name other nodes."""
DESCRIPTIONS = _words("name title label description desc url type kind date lat lon code")
"""What follows the word of an entity in the name of a column that describes it, as in stop_name beside stop_id."""
MARKS = _words("x yes no y n true false ✓ ✔")
"""Cells that tick a box."""

# ---- Singular and plural -------------------------------------------------------------------------
ID_SUFFIX = re.compile(r"(?:[_\s-](?:ids?|Ids?|IDs?|IDS)|(?<=[a-z0-9])(?:Ids?|IDs?))$")
_IRREGULAR = {"children": "child", "people": "person", "vertices": "vertex", "indices": "index", "men": "man"}
_UNCHANGED = ("ss", "us", "is", "series", "species", "news")
_IE_WORDS = ("movies", "cookies", "calories", "zombies", "selfies", "brownies", "genies", "ties", "pies")


@lru_cache(1 << 14)
def singular(word: str) -> str:
    """Return the likeliest singular of a name, in its own spelling and without the word id at its end.

    >>> [singular(word) for word in ("movies", "sub_categories", "cast", "directors_ids", "boss", "series", "people")]
    ['movie', 'sub_category', 'cast', 'director', 'boss', 'series', 'person']
    """
    plain = ID_SUFFIX.sub("", word) or word
    low = plain.lower()
    irregular = next((plural for plural in _IRREGULAR if re.search(rf"(^|_){plural}$", low)), None)
    if irregular is not None:
        return plain[: -len(irregular)] + _IRREGULAR[irregular]
    if low.endswith(_UNCHANGED) or len(low) < 4 or not low.endswith("s"):
        return plain
    if low.endswith("ies") and not any(re.search(rf"(^|_){plural}$", low) for plural in _IE_WORDS):
        return plain[:-3] + "y"
    return plain[:-2] if low.endswith(("ches", "shes", "xes", "sses", "zes")) else plain[:-1]


def is_plural(word: str) -> bool:
    """Whether a word is a plural."""
    return singular(word) != word


def singulars(word: str) -> list[str]:
    """Return the word and the singulars that it may be the plural of, in lower case.

    >>> singulars("Categories")
    ['categories', 'categorie', 'categori', 'category']
    """
    low = word.lower()
    endings = (("s", ""), ("es", ""), ("ies", "y"))
    return [low, *(low.removesuffix(plural) + singular for plural, singular in endings if low.endswith(plural))]


def are_alike(word: str, other: str) -> bool:
    """Whether two words are the same, or one is the plural of the other."""
    return other.lower() in singulars(word) or word.lower() in singulars(other)


# ---- Names, split and spelled --------------------------------------------------------------------
def split_words(name: str) -> list[str]:
    """Split the name of a table or column into words."""
    return [word for word in re.split(r"[_\-\s.]+", name) if word]


def name_words(name: str, entities: Collection[str] = ()) -> list[str]:
    """Split the name of a table into words, without those at its ends that name no type and none of the `entities`.

    >>> name_words("my_movie_actor_v2"), name_words("export-2024"), name_words("order_file", ["order", "file"])
    (['movie', 'actor'], [], ['order', 'file'])
    """
    words = split_words(name)
    says_nothing = [names_no_type(word) and not any(are_alike(word, each) for each in entities) for word in words]
    kept = [at for at, nothing in enumerate(says_nothing) if not nothing]
    return words[kept[0] : kept[-1] + 1] if kept else []


@lru_cache(1 << 14)
def snake(column: str) -> str:
    """Return the name of a column in lower case, with underscores between its words.

    >>> [snake(column) for column in ("headType", "# Source ID", ":START_ID(P)", "x_name")]
    ['head_type', 'source_id', 'start_id', 'x_name']
    """
    plain = re.sub(r"\(.*\)$", "", unmarked(column).lstrip("# "))
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)
    return re.sub(r"[^0-9a-z]+", "_", spaced.lower()).strip("_")


# ---- What a name says ----------------------------------------------------------------------------
def entity(column: str) -> str | None:
    """Return the entity that an id column names, or None.

    >>> [entity(c) for c in ("movie_id", "MovieID", "#Genre", "source", "3")]
    ['movie', 'Movie', 'Genre', None, None]
    """
    word = column.lstrip("# ")  # the header may be commented
    if word.lower() in GENERIC or word.isdigit():
        return None
    return re.sub(r"[_\s-]?(?:id|ID|Id)[_\s-]?\d*$", "", word) or None


def is_id(column: str) -> bool:
    """Whether the name of a column says that it holds ids."""
    return bool(re.search(r"(?:_id|Id|ID)$", column))


def is_key(column: str) -> bool:
    """Whether a column holds ids by its name, which may be that of a system of identifiers, such as ISBN."""
    return is_id(column) or column.lower() in KEYS


def is_identifier(word: str) -> bool:
    """Whether a word names a system of identifiers, such as imdb."""
    return any(part in IDENTIFIERS for part in split_words(snake(word)))


def is_measure(column: str) -> bool:
    """Whether a column measures something, and so is no end of an edge."""
    return snake(column) in MEASURES


def is_weak_relation(column: str | None) -> bool:
    """Whether a column may hold relations but, by its name, also an attribute of edges."""
    return column is not None and snake(column) in WEAK_RELATIONS


def names_no_type(word: str) -> bool:
    """Whether a word in the name of a table says nothing of the types that it joins."""
    return word.lower() in NOT_TYPES or word.isdigit() or bool(re.fullmatch(r"v\d+|version\W*\d*\W*", word.lower()))


def is_word(text: str) -> bool:
    """Whether a text is a word of more than one letter, and not a code such as x or table1."""
    return len(text) > 1 and not re.search(r"\d", text)


def names_no_end(word: str) -> bool:
    """Whether a word in the name of a table without a header is no type at the end of its edges: graph, ratings, 200k.

    >>> [names_no_end(word) for word in ("paper", "ratings", "200k", "A")]
    [False, True, True, True]
    """
    return names_no_type(word) or word.lower() in EVENTS or not is_word(word)


def is_own_role(word: str) -> bool:
    """Whether a foreign key of this name leads to the type of its own table, as parent_id does."""
    return word.lower() in ROLES


_STEM = 4
"""How many letters a role and a verb must share, as trustor and trusts do."""


def is_role(word: str, node_type: str, between: Iterable[str]) -> bool:
    """Whether a column called `word` may hold ids of `node_type`, given the words between the types of a table's name.

    >>> [is_role(word, "paper", ["cites"]) for word in ("papers", "cited_paper", "paper1", "p", "citing", "author")]
    [True, True, True, True, True, False]
    """
    low, kind = word.lower(), node_type.lower()
    if are_alike(low, kind) or kind.startswith(low) or low.endswith(kind) or low in ROLES:
        return True
    if low.startswith(kind):
        rest = low.removeprefix(kind).strip("_- ")
        return rest.isdigit() or len(rest) <= 1 or rest in ROLES or rest in GENERIC
    return any(not are_alike(low, verb.lower()) and low[:_STEM] == verb.lower()[:_STEM] for verb in between)


def is_backwards(first: str, second: str) -> bool:
    """Whether the first of two columns names what an edge leads to, as in cited, citing or user2, user1."""
    words, others = split_words(snake(first)), split_words(snake(second))
    if any(word in TARGET_ROLES for word in words) and not any(word in TARGET_ROLES for word in others):
        return True
    number, other = (re.fullmatch(r"(.*?)_?(\d+)(?:_id)?", "_".join(each)) for each in (words, others))
    return bool(number and other and number[1] == other[1] and int(number[2]) > int(other[2]))


def describes(column: str, other: str) -> bool:
    """Whether a column describes the entity of another, as stop_name does that of stop_id."""
    word = entity(other)
    begin, _, ending = snake(column).rpartition("_")
    return word is not None and ending in DESCRIPTIONS and begin == snake(word)


def usual_name(columns: Sequence[str], node_type: str) -> str | None:
    """Return the column that names the nodes of a type, by what it is called."""
    by_name = {column.lower(): column for column in reversed(columns)}
    usual = (*NAMES, f"{node_type}_name".lower(), f"{node_type}_title".lower())
    return next((by_name[name] for name in usual if name in by_name), None)
