"""toy: the worked example of the PathSim paper (Sun et al., VLDB 2011)."""

from itertools import count

import numpy as np
import pyarrow as pa

from neupath.graph import HIN, Edges
from neupath.nodes import Nodes
from neupath.schema import Relation

VENUES = ("SIGMOD", "VLDB", "ICDE", "KDD")
PAPERS_AT = {
    "Mike": (2, 1, 0, 0),
    "Jim": (50, 20, 0, 0),
    "Mary": (2, 0, 1, 0),
    "Bob": (2, 1, 0, 0),
    "Ann": (0, 0, 1, 1),
}
"""How many papers each author has at each venue; every paper has one author."""


def toy() -> HIN:
    """Return five authors, their papers and four venues.

    >>> toy().num_nodes("paper")
    81
    """
    authors = np.array([a for a, row in enumerate(PAPERS_AT.values()) for papers in row for _ in range(papers)])
    venues = np.array([v for row in PAPERS_AT.values() for v, papers in enumerate(row) for _ in range(papers)])
    papers = np.arange(len(authors))
    people = list(PAPERS_AT)
    numbers = {author: count(1) for author in people}
    paper_ids = [f"{people[a]}-{VENUES[v]}-{next(numbers[people[a]])}" for a, v in zip(authors, venues, strict=True)]
    return HIN.build(
        [Nodes("author", pa.array(people)), Nodes("paper", pa.array(paper_ids)), Nodes("venue", pa.array(VENUES))],
        [
            Edges(Relation("author", "writes", "paper"), authors, papers),
            Edges(Relation("paper", "appears_at", "venue"), papers, venues),
        ],
    )
