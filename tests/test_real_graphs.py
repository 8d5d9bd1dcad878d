"""Real graphs load without settings, and search on them equals a scipy computation."""

from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest
from scipy.sparse import csr_array

import neupath as npth
from neupath.learn.labels import draw_pairs
from tests.command_line import Run

SIZES = {
    "imdb": ({"movie": 4780, "actor": 5841, "director": 2269}, {"movie_actor": 14340, "movie_director": 4780}),
    "kg20c": (
        {"author": 8680, "paper": 5047, "affiliation": 692},
        {"author_write_paper": 14096, "paper_cite_paper": 8583},
    ),
    "acm_4019": ({"paper": 4019, "author": 7167, "subject": 60}, {"paper_author": 13407, "paper_subject": 4019}),
    "acm_hgb": (
        {"paper": 3025, "author": 5959, "term": 1902},
        {"paper_author": 9949, "cites": 5343, "paper_term": 255619},
    ),
    "hetionet": (
        {"Gene": 20945, "Disease": 137, "Biological Process": 11381},
        {"AeG": 369336, "GiG": 147164, "DaG": 12623},
    ),
}


@pytest.mark.parametrize("name", list(SIZES))
@pytest.mark.slow
def test_public_graphs_load_without_config(data: Path, name: str) -> None:
    hin = npth.load(data / name)
    nodes, edges = SIZES[name]
    for node_type, count in nodes.items():
        assert hin.num_nodes(node_type) == count
    by_name = {relation.name: hin.num_edges(relation) for relation in hin.schema.relations}
    for relation, count in edges.items():
        assert by_name[relation] == count


@pytest.mark.slow
def test_imdb_labels_name_the_type_of_their_integer_ids(data: Path, tmp_path: Path, run: Run) -> None:
    """Movies, actors and directors are all numbered from 0."""
    pytest.importorskip("torch")
    hin = npth.load(data / "imdb")
    teacher = npth.PathSim("movie-actor-movie").fit(hin)
    pairs = draw_pairs(teacher, list(range(100, 112)), seed=1)
    rows = list(zip(pairs.queries.tolist(), pairs.targets.tolist(), pairs.scores.tolist(), strict=True))
    with pytest.raises(npth.NeuPathError, match="say which with node_type, or write query_type and target_type"):
        npth.infer(hin, rows)
    inferred = npth.infer(hin, rows, node_type="movie", max_length=2)
    assert [part.metapath for part in inferred.parts] == ["movie-actor-movie"]
    plain, typed = tmp_path / "plain.csv", tmp_path / "typed.csv"
    plain.write_text("query,target,score\n" + "".join(f"{q},{t},{s}\n" for q, t, s in rows))
    header = "query,target,score,query_type,target_type\n"
    typed.write_text(header + "".join(f"{q},{t},{s},movie,movie\n" for q, t, s in rows))
    settings = ("--architecture", "countpath", "--layers", 1, "--epochs", 1, "--out", tmp_path / "model")
    refused = run("train", data / "imdb", "--pairs", plain, *settings)
    assert (refused.code, "say which with --node-type, or write query_type and" in refused.err) == (2, True)
    assert run("train", data / "imdb", "--pairs", plain, *settings, "--node-type", "movie").code == 0
    assert run("train", data / "imdb", "--pairs", typed, *settings).code == 0
    judged = run("evaluate", data / "imdb", "--model", tmp_path / "model", "--pairs", plain, "--json").json
    assert (judged["pairs"], judged["queries"]) == (len(rows), 12)


def movie_actor(data: Path) -> csr_array:
    table = pyarrow.csv.read_csv(
        data / "imdb" / "movie_actor.tsv.gz", parse_options=pyarrow.csv.ParseOptions(delimiter="\t")
    )
    rows, columns = table["movie_id"].to_numpy(), table["actor_id"].to_numpy()
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(4780, 5841))


@pytest.mark.parametrize("path", ["MAM", "MAMAM"])
@pytest.mark.slow
def test_imdb_top_20_equals_scipy(data: Path, path: str) -> None:
    """Top 20 of 500 random movies by 2M/(d+d'), best first and ties in node order, ids and scores."""
    a = movie_actor(data)
    m = a @ a.T if path == "MAM" else (a @ a.T) @ (a @ a.T).T
    d = m.diagonal()
    queries = np.random.default_rng(0).choice(4780, 500, replace=False)
    results = npth.PathSim(path).fit(npth.load(data / "imdb")).top_k(queries.tolist(), k=20)
    for query, hits in zip(queries, results, strict=True):
        row = m[[query]].toarray().ravel()
        scores = 2 * row / (d[query] + d)
        scores[query] = 0
        order = np.lexsort((np.arange(4780), -scores))[:20]
        order = order[scores[order] > 0]
        assert hits.ids == tuple(order.tolist())
        np.testing.assert_allclose(hits.scores, scores[order], rtol=1e-12)


@pytest.mark.slow
def test_hetionet_diseases(data: Path) -> None:
    hin = npth.load(data / "hetionet")
    hits = npth.PathSim("disease-gene-disease").fit(hin).top_k("multiple sclerosis")
    assert len(hits) == 10
    why = npth.explain(hin, "disease-gene-disease", "multiple sclerosis", hits[0].id, limit=3)
    assert why.score == hits[0].score
    assert sum(i.share for i in why.instances) + why.hidden_share == pytest.approx(why.score)
    one = npth.PathSim("Disease -DaG-> Gene <-DaG- Disease").fit(hin).top_k("multiple sclerosis")
    assert one.ids != hits.ids


@pytest.mark.parametrize(
    ("name", "path"),
    [("imdb", p) for p in ("MAM", "MAMAM", "DMD", "DMAMD")]
    + [("kg20c", f"author-{p}-author") for p in ("paper", "paper-conference-paper")]
    + [("kg20c", f"paper-{p}-paper") for p in ("conference", "author-affiliation-author")],
)
@pytest.mark.slow
def test_the_papers_paths_are_found_from_ten_queries(data: Path, name: str, path: str) -> None:
    hin = npth.load(data / name)
    teacher = npth.PathSim(path).fit(hin)
    rows = np.random.default_rng(1).permutation(hin.num_nodes(teacher.source_type))
    ids = hin.nodes[teacher.source_type].ids.take(rows[:10]).to_pylist()
    inferred = npth.infer(hin, draw_pairs(teacher, ids), max_length=4)
    part = inferred.parts[0]
    assert (inferred.measure, part.metapath, part.weight) == ("pathsim", teacher.metapath_text, 1.0)
    np.testing.assert_allclose(inferred.scorer.score_rows(rows[10:20]), teacher.score_rows(rows[10:20]), atol=1e-9)


@pytest.mark.slow
def test_a_long_path_is_found_in_hetionet_without_trying_all(data: Path) -> None:
    hin = npth.load(data / "hetionet")
    path = "Disease -DuG-> Gene <-AeG- Anatomy-Disease-Anatomy -AeG-> Gene <-DuG- Disease"
    diseases = hin.nodes["Disease"].ids[10:20].to_pylist()
    inferred = npth.infer(hin, draw_pairs(npth.PathSim(path).fit(hin), diseases))
    assert (inferred.parts[0].metapath, inferred.parts[0].weight) == (path, 1.0)
    assert inferred.searched.tried < inferred.searched.total / 2
