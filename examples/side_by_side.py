"""The ten nodes most similar to one, under many measures side by side, as a Markdown table.

    python examples/side_by_side.py GRAPH QUERY --node-type TYPE --metapaths P1,P2 [--config graph.toml] [--embeddings]

Measures along a meta-path have one column per meta-path; measures over the whole graph have one column. --embeddings
adds node2vec and metapath2vec, whose training takes a minute on a small graph and needs neupath[learn].
"""

import argparse

import neupath as npth
from neupath.measures import GRAPH_MEASURES, graph_measure_named


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph", nargs="?", default="toy")
    parser.add_argument("query", nargs="?", default="Mike")
    parser.add_argument("--node-type", default="author")
    parser.add_argument("--metapaths", default="APA,APVPA")
    parser.add_argument("--config", default=None)
    parser.add_argument("--embeddings", action="store_true")
    parser.add_argument("-k", type=int, default=10)
    arguments = parser.parse_args()
    hin = npth.load(arguments.graph, config=arguments.config)
    paths = arguments.metapaths.split(",")
    scorers: dict[str, npth.Scorer] = {f"pathsim, {path}": npth.PathSim(path) for path in paths}
    scorers |= {name: graph_measure_named(name, arguments.node_type) for name in GRAPH_MEASURES}
    if arguments.embeddings:
        from neupath_paper.walk_embeddings import MetaPath2Vec, Node2Vec

        scorers["node2vec"] = Node2Vec(arguments.node_type)
        scorers |= {f"metapath2vec, {path}": MetaPath2Vec(path) for path in paths}
    columns = {name: scorer.fit(hin).top_k(arguments.query, arguments.k) for name, scorer in scorers.items()}
    print("| rank | " + " | ".join(columns) + " |")
    print("|---:|" + "---|" * len(columns))
    for rank in range(arguments.k):
        cells = [hits[rank].name or str(hits[rank].id) if rank < len(hits) else "" for hits in columns.values()]
        print(f"| {rank + 1} | " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")


if __name__ == "__main__":
    main()
