"""whatif: what would move a hit; and the options that show how far to trust hits: significance and stability."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from neupath.cli.program import printable
from neupath.cli.terminal import (
    AsOfOption,
    GraphSource,
    MeasureOption,
    MetaPathOption,
    OutputFlags,
    ProgressBars,
    note,
    note_relations,
    plain_table,
    print_json,
    prints_table,
    reads_graph,
    stdout,
    titled,
)
from neupath.engine.hits import Hits, score_text
from neupath.engine.scorer import Scorer
from neupath.errors import QueryError, listed
from neupath.evidence.counterfactual_problem import Element
from neupath.evidence.counterfactuals import BUDGET, WhatIf, what_if
from neupath.evidence.significance import PERMUTATIONS, Significance, significance
from neupath.evidence.stability import Stability, check_stability, stability
from neupath.learn.registry import required_metapath, suggested_type


# ---- whatif --------------------------------------------------------------------------------------
@reads_graph
@prints_table
def whatif(
    source: GraphSource,
    query: Annotated[str, typer.Argument(metavar="A", help="An id or a name.")],
    target: Annotated[str, typer.Argument(metavar="B", help="An id or a name.")],
    metapath: MetaPathOption = None,
    measure: MeasureOption = "pathsim",
    k: Annotated[int, typer.Option("-k", help="How many hits count as the best.")] = 10,
    remove: Annotated[
        str | None, typer.Option("--remove", help="Remove edges, or nodes of this type, to move B out of the best.")
    ] = None,
    add: Annotated[
        str | None, typer.Option("--add", help="Add edges, or nodes of this type, to bring B into the best.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="How many single changes to show.")] = 10,
    budget: Annotated[
        int, typer.Option("--budget", help="How much work to spend on finding a set and proving it smallest.")
    ] = BUDGET,
    as_of: AsOfOption = None,
    *,
    output: OutputFlags,
) -> None:
    """Find the fewest edges or nodes that decide whether B is among the best hits of A.

    If B is among the k best, find what to remove so that it is not; if not,
    what to add so that it is. Every claim is checked by changing the graph and
    searching again. A set of removals is proven smallest, or its lower bound is
    shown; of additions, the smallest of those tried is.

    Examples:
      neupath whatif toy Mike Mary -p APVPA -k 2 --remove paper
      neupath whatif toy Jim Ann -p APVPA -k 1 --add edges
    """
    hin = source.load(as_of)
    parsed = hin.metapath(metapath or str(required_metapath(hin.schema, None, suggested_type(hin, [query]))))
    note_relations(parsed)
    answer = what_if(
        hin, parsed, query, target, measure=measure, k=k, remove=remove, add=add, limit=limit, budget=budget
    )
    if output.as_json:
        print_json(answer.to_dict())
    elif output.is_table:
        sets = [*([("smallest", answer.smallest)] if answer.smallest else []), *(("alone", s) for s in answer.singles)]
        rows = [
            {"set": name, "change": str(element), "rank": changed.rank, "score": changed.score}
            for name, changed in sets
            for element in changed.elements
        ]
        output.print_table(("set", "change", "rank", "score"), rows)
    else:
        stdout.print(render_what_if(answer))


def render_what_if(answer: WhatIf) -> Group:
    """Show the smallest set of changes, and single changes with their effect."""
    lines: list[Any] = [Text(f"now: {answer.now}")]
    lines.append(Text(printable(answer.summary), style="yellow" if answer.smallest is None else ""))
    if answer.smallest is not None:
        changes = (Text(describe_element(element), overflow="fold") for element in answer.smallest.elements)
        lines += [Padding(change, (0, 0, 0, 2), expand=False) for change in changes]
    if answer.singles:
        table = plain_table(">rank", ">score", "without" if answer.change == "remove" else "with")
        for single in answer.singles:
            change = Text(describe_element(single.elements[0]), overflow="fold")
            table.add_row(_short_rank(single.rank), score_text(single.score), change)
        lines += ["", Text("each alone", style="bold"), table]
    return titled(printable(answer.title), *lines)


def describe_element(element: Element) -> str:
    """Describe a changed edge or node in one line."""
    return printable(str(element))


def _short_rank(rank: int | None) -> str:
    return "-" if rank is None else f"{rank:,}"


# ---- How far to trust hits -----------------------------------------------------------------------
SignificanceOption = Annotated[
    bool, typer.Option("--significance", help="Show p-values against graphs permuted with all degrees kept.")
]
PermutationsOption = Annotated[
    int | None,
    typer.Option(
        "--permutations",
        help="Permuted graphs for --significance; p is at least 1/(N+1).",
        show_default=str(PERMUTATIONS),
    ),
]
StabilityOption = Annotated[
    bool, typer.Option("--stability", help="Show where ranks stay when a tenth of the edges is missing.")
]
StabilityByOption = Annotated[
    str | None,
    typer.Option("--stability-by", help="Instead, show where ranks stay when any one node of this type is missing."),
]
SeedOption = Annotated[
    int | None, typer.Option("--seed", help="The seed of permutations and samples.", show_default="0")
]
Evidence = Significance | Stability


def check_evidence_options(
    *,
    with_significance: bool,
    permutations: int | None,
    seed: int | None,
    with_stability: bool = False,
    by: str | None = None,
    filters: Sequence[str] = (),
) -> None:
    """Raise if an option would be ignored, or if the hits of a search are not those that the evidence is about."""
    if permutations is not None and not with_significance:
        raise QueryError("--permutations is for --significance; give it, too")
    if seed is not None and not (with_significance or with_stability):
        raise QueryError("--seed is for --significance and --stability, which draw at random; give one, too")
    if with_stability and by is not None:
        raise QueryError("give either --stability, for edges, or --stability-by, for nodes, not both")
    if filters and (with_stability or by is not None):
        which = "--stability" if by is None else "--stability-by"
        raise QueryError(f"{which} ranks all targets with a path; leave out {listed(filters)}")
    if with_significance and {"--with", "--without"} & set(filters):
        raise QueryError("--significance tests pairs of nodes, not sets; leave out --with and --without")
    if "--include-query" in filters and with_significance:
        raise QueryError("--significance has no p-value of a node with itself; leave out --include-query")


def find_evidence(
    scorer: Scorer, results: Sequence[Hits], permutations: int | None, is_stability: bool, by: str | None, seed: int
) -> list[dict[str, Evidence]]:
    """Return the significance and the stability of the hits of each query, where they are asked for."""
    if is_stability:
        check_stability(scorer, by)
    evidence: list[dict[str, Evidence]] = [{} for _ in results]
    with ProgressBars() as bars:
        if permutations is not None:
            found = significance(scorer, results, permutations=permutations, seed=seed, progress=bars)
            for known, each in zip(evidence, found, strict=True):
                known["significance"] = each
        if is_stability:
            for known, hits in zip(evidence, results, strict=True):
                known["stability"] = stability(scorer, hits, by=by, seed=seed, progress=bars)
    return evidence


def evidence_columns(known: Mapping[str, Evidence]) -> dict[str, list[str]]:
    """Return the columns of a table of hits."""
    columns = {}
    for each in known.values():
        if isinstance(each, Significance):
            columns["p"] = [f"{p:.3g}" for p in each.p_values]
            columns["q"] = [f"{q:.3g}" for q in each.q_values]
        else:
            columns["ranks"] = [f"{_short_rank(low)} to {_short_rank(high)}" for low, high in each.intervals]
    return columns


def note_evidence(known: Mapping[str, Evidence]) -> None:
    """Say what the columns mean and rest on."""
    for each in known.values():
        if isinstance(each, Significance):
            note(
                f"p: chance of such a score for nodes of these degrees, from {each.permutations:,} permuted graphs, "
                f"not below {each.resolution:.2g}; q: corrected over these hits (Benjamini-Hochberg)"
            )
            for mixing in each.mixing:
                if mixing.note is not None:
                    note(mixing.note)
        elif each.share is not None:
            note(f"ranks: nine tenths of {each.samples:,} graphs without {each.share:.0%} of the edges")
        else:
            note(f"ranks: without any one {each.by} on the walks of both nodes")
