"""whatif: what would move a hit; and the options that show how far to trust hits: significance and stability."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from neupath import answers, requests
from neupath.cli.program import printable
from neupath.cli.terminal import (
    GraphSource,
    OutputFlags,
    note,
    note_relations,
    plain_table,
    print_json,
    stdout,
    takes_options,
    titled,
)
from neupath.engine.hits import score_text
from neupath.evidence.counterfactual_problem import Element
from neupath.evidence.counterfactuals import WhatIf, what_if
from neupath.evidence.significance import Significance
from neupath.evidence.stability import Stability


# ---- whatif --------------------------------------------------------------------------------------
@takes_options
def whatif(source: GraphSource, asked: requests.Counterfactual, output: OutputFlags) -> None:
    """Find the fewest edges or nodes that decide whether B is among the best hits of A.

    If B is among the k best, find what to remove so that it is not; if not,
    what to add so that it is. Every claim is checked by changing the graph and
    searching again. A set of removals is proven smallest, or its lower bound is
    shown; of additions, the smallest of those tried is.

    Examples:
      neupath whatif toy Mike Mary -p APVPA -k 2 --remove paper
      neupath whatif toy Jim Ann -p APVPA -k 1 --add edges
    """
    hin = source.load(asked.as_of)
    path = answers.read_metapath(hin, asked.metapath, asked.query)
    note_relations(path)
    options = answers.given(asked, "measure", "k", "remove", "add", "limit", "budget")
    answer = what_if(hin, path, asked.query, asked.target, **options)
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
Evidence = Significance | Stability


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
