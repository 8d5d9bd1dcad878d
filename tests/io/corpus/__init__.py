"""Small sources in the layouts of real projects, each with the graph that a person expects of it.

A new source is a function with `@source` in `tabular` (text tables, which the generator changes too) or in `others`.
"""

from tests.io.corpus import others, tabular
from tests.io.corpus.frame import SOURCES

__all__ = ["SOURCES", "others", "tabular"]
