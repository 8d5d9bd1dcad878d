"""Significance: whether p-values of null graphs are uniform, agreement with hetmatpy, times and memory.

    python benchmarks/significance.py uniform --data DATA
    python benchmarks/significance.py times --data DATA [--permutations 200]
    python benchmarks/significance.py disk --data DATA [--permutations 200]
    python benchmarks/significance.py hetmatpy --data DATA --python PYTHON [--permutations 100]

DATA holds `kg20c` and `hetionet`. PYTHON is an interpreter that has hetmatpy (`pip install hetmatpy`), which needs
other versions of libraries than this project. Times are those of the processor, one core.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.stats import kstest, spearmanr

import neupath as npth
from neupath import HIN, PathSim
from neupath.engine.scorer import Scorer
from neupath.errors import SourceWarning
from neupath.evidence.permutation import Permutations
from neupath.evidence.significance import degree_classes, null_model, relations_of, significance
from neupath.graph.metapath import Relation
from neupath.graph.nodes import Id
from neupath.measures import DWPC, DWPCNoRepeats
from neupath.store import open_store, write_store
from neupath_paper.protocol import load_graph

PAIRS, GRAPHS = 1000, 20
CASES = (("kg20c", "APCPA"), ("hetionet", "Disease-Gene-Disease"), ("hetionet", "Gene-Anatomy-Gene"))


def graph_of(name: str, data: Path) -> HIN:
    return npth.load(data / name) if name == "hetionet" else load_graph(name, data)


# ---- Uniform p-values ----------------------------------------------------------------------------
def run_uniform(data: Path) -> None:
    """Test pairs of 20 permuted graphs against 200 others; ties are broken at random, since scores are discrete."""
    print("| graph | meta-path | measure | pairs | score above 0 | KS distance | KS p |")
    print("|---|---|---|---:|---:|---:|---:|")
    cases = [
        ("kg20c", PathSim("APCPA")), ("kg20c", DWPC("APCPA")), ("hetionet", PathSim("Disease-Gene-Disease")),
        ("hetionet", DWPCNoRepeats("Compound-Gene-Disease")),
    ]  # fmt: skip
    for name, measure in cases:
        hin = graph_of(name, data)
        scorer = measure.fit(hin)
        rng = np.random.default_rng(0)
        queries = _busy_rows(scorer, rng)
        targets = rng.integers(0, hin.num_nodes(scorer.target_type), PAIRS)
        if scorer.source_type == scorer.target_type:
            targets = np.where(targets == queries, (targets + 1) % hin.num_nodes(scorer.target_type), targets)
        scores = np.zeros(PAIRS)
        for number, graph in enumerate(Permutations(hin, relations_of(scorer), GRAPHS, seed=12345)):
            observed = scorer.bind(graph)
            for place in range(number, PAIRS, GRAPHS):
                scores[place] = observed.score_rows(queries[[place]])[0, targets[place]]
        above, equal, total = null_model(scorer, 200, 7).count(queries, targets, scores)
        p_values = (above + rng.random(PAIRS) * (equal + 1)) / (total + 1)
        test = kstest(p_values, "uniform")
        print(
            f"| {name} | {scorer.metapath_text} | {scorer.name} | {PAIRS:,} | {np.mean(scores > 0):.0%} | "
            f"{test.statistic:.3f} | {test.pvalue:.2f} |",
            flush=True,
        )


def _busy_rows(scorer: Scorer, rng: np.random.Generator) -> np.ndarray:
    """Draw queries that have several edges, so that not every score is 0."""
    relation = relations_of(scorer)[0]
    matrix = scorer.hin_.matrices[relation]
    counts = np.diff(matrix.indptr)
    if relation.source != scorer.source_type:
        counts = np.bincount(matrix.indices, minlength=matrix.shape[1])
    busy = np.argsort(-counts)[: max(50, len(counts) // 20)]
    return rng.choice(busy, PAIRS)


# ---- Times ---------------------------------------------------------------------------------------
def run_times(data: Path, permutations: int) -> None:
    print("| graph | meta-path | first hit s | next hit ms | its top 20 ms | 1,000 queries s | peak MiB |")
    print("|---|---|---:|---:|---:|---:|---:|")
    toy = PathSim("APVPA").fit(npth.load("toy"))
    significance(toy, [toy.top_k("Mike", 2)], permutations=2)  # compiles the kernels
    for name, path in CASES:
        hin = graph_of(name, data)
        scorer = PathSim(path).fit(hin)
        rng = np.random.default_rng(1)
        rows = rng.permutation(hin.num_nodes(scorer.source_type))[:1000]
        lists = [hits for hits in scorer.top_k_rows(rows, 20) if len(hits)]
        spent = []
        one, other = (scorer.top_k(lists[0].query_id, k) for k in (1, 2))
        for hits in ([one], [other], lists[:1], lists):
            began = time.process_time()
            significance(scorer, hits, permutations=permutations)
            spent.append(time.process_time() - began)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"| {name} | {path} | {spent[0]:.1f} | {1e3 * spent[1]:.1f} | {1e3 * spent[2]:.1f} | {spent[3]:.0f} "
            f"({len(lists):,} with hits) | {peak:,.0f} |",
            flush=True,
        )


# ---- Permuted graphs on disk ---------------------------------------------------------------------
def run_disk(data: Path, permutations: int) -> None:
    """Time the first hit of new processes: with nothing on disk, with permuted graphs, and with null scores, too."""
    print("| graph | meta-path | nothing on disk s | permuted graphs on disk s | null scores on disk s | MiB on disk |")
    print("|---|---|---:|---:|---:|---:|")
    for name, path in CASES:
        hin = graph_of(name, data)
        scorer = PathSim(path).fit(hin)
        rows = np.random.default_rng(1).permutation(hin.num_nodes(scorer.source_type))[:1000]
        classes = degree_classes(hin, scorer.source_type, relations_of(scorer))
        queries = [hits.query_id for hits in scorer.top_k_rows(rows, 1) if len(hits)]
        kinds = classes[hin.rows(scorer.source_type, queries)]
        other = queries[int(np.argmax(kinds != kinds[0]))]  # of other degrees
        with tempfile.TemporaryDirectory() as folder:
            store = write_store(hin, Path(folder) / name)
            spent = [_first_hit(store, path, query, permutations) for query in (queries[0], other, other)]
            size = sum(file.stat().st_size for file in (store / "cache").rglob("*.npy")) / 2**20
        times = " | ".join(f"{seconds:.2f}" for seconds in spent)
        print(f"| {name} | {path} | {times} | {size:,.0f} |", flush=True)


def _first_hit(store: Path, path: str, query: Id, permutations: int) -> float:
    """Return the seconds of the processor that a new process takes for the p-value of one hit."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_time_first_hit, store, path, query, permutations).result()


def _time_first_hit(store: Path, path: str, query: Id, permutations: int) -> float:
    toy = PathSim("APVPA").fit(npth.load("toy"))
    significance(toy, [toy.top_k("Mike", 2)], permutations=2)  # loads the kernels
    scorer = PathSim(path).fit(open_store(store).hin())
    hits = scorer.top_k(query, 1)
    began = time.process_time()
    significance(scorer, [hits], permutations=permutations)
    return time.process_time() - began


# ---- hetmatpy ------------------------------------------------------------------------------------
HETMATPY = """
import json, sys
import numpy, pandas
import hetnetpy.hetnet, hetnetpy.permute
import hetmatpy.degree_weight, hetmatpy.degree_group, hetmatpy.pipeline
task = json.load(open(sys.argv[1]))
metagraph = hetnetpy.hetnet.MetaGraph.from_edge_tuples(
    [(s, t, kind, "both") for s, kind, t in task["relations"]], {"Compound": "C", "Gene": "G", "Disease": "D",
    "binds": "b", "associates": "a", "treats": "t"})
graph = hetnetpy.hetnet.Graph(metagraph)
for kind, names in task["nodes"].items():
    for name in names:
        graph.add_node(kind=kind, identifier=name)
for (s, kind, t), pairs in zip(task["relations"], task["edges"]):
    for a, b in pairs:
        graph.add_edge((s, a), (t, b), kind, "both")
result = {}
stats, permuted = {path: None for path in task["metapaths"]}, graph
observed = {}
for path in task["metapaths"]:
    rows, columns, matrix = hetmatpy.degree_weight.dwpc(graph, metagraph.metapath_from_abbrev(path), damping=0.5)
    matrix = matrix.toarray() if hasattr(matrix, "toarray") else numpy.asarray(matrix)
    observed[path] = list(rows), list(columns), matrix
for seed in range(task["permutations"]):
    permuted, _ = hetnetpy.permute.permute_graph(permuted, multiplier=10, seed=seed)
    for path in task["metapaths"]:
        frame = hetmatpy.degree_group.single_permutation_degree_group(
            permuted, metagraph.metapath_from_abbrev(path), observed[path][2].mean(), 0.5)
        stats[path] = frame if stats[path] is None else stats[path] + frame
for path in task["metapaths"]:
    rows, columns, matrix = observed[path]
    frame = hetmatpy.pipeline.add_gamma_hurdle_to_dgp_df(stats[path].reset_index())
    groups = frame.set_index(["source_degree", "target_degree"]).to_dict(orient="index")
    metapath = metagraph.metapath_from_abbrev(path)
    by_source, by_target = hetmatpy.degree_group.metapath_to_degree_dicts(graph, metapath)
    source_degree = {i: degree for degree, places in by_source.items() for i in places}
    target_degree = {i: degree for degree, places in by_target.items() for i in places}
    scaled = numpy.arcsinh(matrix / matrix.mean())
    pairs = []
    for i, j in task["pairs"][path]:
        i, j = rows.index(i), columns.index(j)
        row = dict(groups[source_degree[i], target_degree[j]], dwpc=scaled[i, j])
        pairs.append((float(matrix[i, j]), float(hetmatpy.pipeline.calculate_p_value(row))))
    result[path] = pairs
json.dump(result, open(sys.argv[2], "w"))
"""
METAPATHS = {
    "CbGaD": "Compound -CbG-> Gene <-DaG- Disease",
    "CbGbCtD": "Compound -CbG-> Gene <-CbG- Compound -CtD-> Disease",
}
RELATIONS = {"CbG": ("Compound", "binds", "Gene"), "DaG": ("Disease", "associates", "Gene"),
             "CtD": ("Compound", "treats", "Disease")}  # fmt: skip


def run_hetmatpy(data: Path, python: str, permutations: int) -> None:
    """Compare DWPC over paths and its p-values with hetmatpy's, which fits a gamma distribution to null scores."""
    hin = graph_of("hetionet", data)
    rng = np.random.default_rng(0)
    relations = {relation.name: relation for relation in hin.schema.relations if relation.name in RELATIONS}
    scorers = {short: DWPCNoRepeats(path, damping=0.5).fit(hin) for short, path in METAPATHS.items()}
    compounds = np.flatnonzero(np.diff(hin.matrices[relations["CbG"]].indptr))
    chosen: dict[str, list[tuple[int, int]]] = {}
    for short, scorer in scorers.items():
        scores = scorer.score_rows(compounds)
        pairs = np.argwhere(scores > 0)
        places = rng.choice(len(pairs), min(PAIRS, len(pairs)), replace=False)
        chosen[short] = [(int(compounds[i]), int(j)) for i, j in pairs[places]]
    used = {"Compound": hin.num_nodes("Compound"), "Disease": hin.num_nodes("Disease"), "Gene": hin.num_nodes("Gene")}
    edges = [_ends(hin, relations[name]) for name in RELATIONS]
    task = {
        "relations": list(RELATIONS.values()), "nodes": {kind: list(range(count)) for kind, count in used.items()},
        "edges": edges, "metapaths": list(METAPATHS), "pairs": chosen, "permutations": permutations,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "task.json", Path(folder) / "result.json"
        files[0].write_text(json.dumps(task))
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run([python, "-W", "ignore", "-c", HETMATPY, *map(str, files)], check=True, env=environment)
        theirs = json.loads(files[1].read_text())
    print("| meta-path | pairs | DWPC differs by | Spearman of p | median difference of p | same side of 0.05 |")
    print("|---|---:|---:|---:|---:|---:|")
    for short, scorer in scorers.items():
        rows, columns = np.array(chosen[short]).T
        scores = np.array([scorer.score_rows(np.array([x]))[0, y] for x, y in chosen[short]])
        other_scores, other_p = np.array(theirs[short]).T
        own_p = null_model(scorer, permutations, 0).p_values(rows, columns, scores)
        floor = 1 / (permutations + 1)
        other_p = np.maximum(other_p, floor)
        print(
            f"| {short} | {len(rows):,} | {np.abs(scores - other_scores).max():.1e} | "
            f"{spearmanr(own_p, other_p).statistic:.3f} | {np.median(np.abs(own_p - other_p)):.3f} | "
            f"{np.mean((own_p < 0.05) == (other_p < 0.05)):.1%} |",
            flush=True,
        )


def _ends(hin: HIN, relation: Relation) -> list[list[int]]:
    entries = hin.matrices[relation].tocoo()
    return np.stack([entries.row, entries.col], axis=1).tolist()  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["uniform", "times", "disk", "hetmatpy"])
    parser.add_argument("--data", type=Path, default=os.environ.get("NEUPATH_DATA"))
    parser.add_argument("--python", help="an interpreter that has hetmatpy")
    parser.add_argument("--permutations", type=int)
    given = parser.parse_args()
    warnings.simplefilter("ignore", SourceWarning)
    if given.data is None:
        sys.exit("give --data, the folder that holds kg20c and hetionet")
    data = Path(given.data)
    if given.part == "uniform":
        run_uniform(data)
    elif given.part == "times":
        run_times(data, given.permutations or 200)
    elif given.part == "disk":
        run_disk(data, given.permutations or 200)
    elif given.python is None:
        sys.exit("give --python, an interpreter that has hetmatpy")
    else:
        run_hetmatpy(data, given.python, given.permutations or 100)


if __name__ == "__main__":
    main()
