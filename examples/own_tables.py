"""Your own tables as a graph: build it in memory, search with two meanings of "similar", and see why."""

import pyarrow as pa

import neupath as npth

films = pa.table(
    {
        "id": ["alien", "aliens", "up", "heat"],
        "name": ["Alien", "Aliens", "Up", "Heat"],
        "year": [1979, 1986, 2009, 1995],
    }
)
cast = pa.table({"film": ["alien", "aliens", "heat", "aliens"], "actor": ["Weaver", "Weaver", "Pacino", "Biehn"]})
tags = pa.table({"film": ["alien", "aliens", "heat", "up"], "tag": ["space", "space", "city", "house"]})

hin = npth.load({"film": films, ("film", "actor"): cast, ("film", "tag"): tags})

for path in ("film-actor-film", "film-tag-film"):
    for hit in npth.PathSim(path).fit(hin).top_k("Alien", where="year >= 1980"):
        print(f"{path}: {hit.name} {hit.score:.4f}")
        for instance in npth.explain(hin, path, "Alien", hit.id).instances:
            print("   because of", " - ".join(node.label for node in instance.nodes))
