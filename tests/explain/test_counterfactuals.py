"""Counterfactuals: equal to exhaustive search on small graphs, and true when the graph is really changed."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neupath import HIN, Edges, MetaPath, QueryErrorT, load
