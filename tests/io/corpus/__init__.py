"""Small sources in the layouts of real projects, each with the graph that a person expects of it.

A new source is an entry of `tabular.TEXTS` (text tables and files) or of `others.OTHERS`.
"""

from tests.io.corpus.others import OTHERS
from tests.io.corpus.tabular import TEXTS

SOURCES = OTHERS | TEXTS
"""All sources of the corpus by name."""

__all__ = ["SOURCES", "TEXTS"]
