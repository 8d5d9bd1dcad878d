"""One question, six measures: which classes of Python's library are like collections.OrderedDict?"""

import neupath as npth
from neupath.measures import MEASURES, measure_named

hin = npth.load("stdlib")
for name in MEASURES:
    hits = measure_named(name, "class-method-class").fit(hin).top_k("collections.OrderedDict", k=3)
    print(f"{name:<10}", ", ".join(f"{hit.id} {hit.score:.4g}" for hit in hits))
