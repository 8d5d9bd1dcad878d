"""HTML: an explanation as one file without scripts, whose groups are bars that unfold to their paths."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from neupath._runtime.files import write_text
from neupath.engine.hits import score_text
from neupath.errors import QueryError
from neupath.evidence.explanation import Explanation
from neupath.evidence.groups import PathGroup, PathInstance, counted, percent
from neupath.evidence.model_explanation import (
    AttentionExplanation,
    CombinedExplanation,
    Contribution,
    ModelExplanation,
    StackExplanation,
    signed,
)

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; --bar: #3b6fb6; --below: #b6543b; --quiet: #667; }
@media (prefers-color-scheme: dark) { :root { --bar: #6d9fe0; --below: #e08a6d; --quiet: #99a; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; }
h1, h2, summary, li { overflow-wrap: anywhere; }
.quiet { color: var(--quiet); }
details { margin: .3rem 0; } summary { cursor: pointer; }
.bar { display: block; height: .5rem; background: var(--bar); border-radius: .25rem; min-width: 1px; }
.below { background: var(--below); }
.share { display: inline-block; min-width: 5.5rem; font-variant-numeric: tabular-nums; }
ol { margin: .3rem 0 .6rem; } .link { color: var(--quiet); }
"""
Explained = Explanation | ModelExplanation


def write_html(explanation: Explained, path: str | Path) -> Path:
    """Write an explanation to an HTML file, which needs nothing but itself and runs no script.

    Parameters
    ----------
    explanation
        What `explain` or `explain_model` returns; ask for `paths` of each group to unfold.
    path
        The file to write, ending in .html.

    >>> from tempfile import TemporaryDirectory
    >>> from neupath import explain, load
    >>> with TemporaryDirectory() as folder:
    ...     page = write_html(explain(load("toy"), "APVPA", "Mike", "Mary"), f"{folder}/why.html").read_text("utf-8")
    >>> "<summary>" in page, "<script" in page
    (True, False)
    """
    target = Path(path)
    if target.suffix.lower() != ".html":
        raise QueryError(f"cannot write an HTML page to {target}; the name must end in .html")
    write_text(target, render_html(explanation))
    return target


def render_html(explanation: Explained) -> str:
    """Return an explanation as the text of an HTML page."""
    title, parts = _title(explanation), "".join(_sections(explanation))
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{title}</h1>\n<p>{_text(explanation.summary)}</p>\n{parts}</body>\n</html>\n"
    )


def render_fragment(explanation: Explained) -> str:
    """Return an explanation as HTML for a notebook: what the page has, within its own styles."""
    style = _STYLE.replace(":root", ".neupath").replace("body {", ".neupath {")
    parts = "".join(_sections(explanation))
    return (
        f'<div class="neupath"><style scoped>{style}</style><b>{_title(explanation)}</b>'
        f"<p>{_text(explanation.summary)}</p>{parts}</div>"
    )


def _title(explanation: Explained) -> str:
    ends: Sequence[object] = (explanation.query, explanation.target)
    first = explanation.parts[0].explanation if isinstance(explanation, CombinedExplanation) else explanation
    if isinstance(first, Explanation):
        ends = first.query.label, first.target.label
    title = f"{_text(ends[0])} and {_text(ends[1])}: {_text(explanation.measure)} = {score_text(explanation.score)}"
    return title if isinstance(explanation, Explanation) else title + _place(explanation)


def _place(explanation: Explained) -> str:
    return f", rank {explanation.rank:,} of {explanation.num_targets:,}" if explanation.rank else ""


def _sections(explanation: Explained) -> Iterable[str]:
    if isinstance(explanation, AttentionExplanation):
        yield _contributions(explanation)
        if explanation.groups:
            what = "the model's attention" if explanation.base is None else "what the paths that raise it add"
            yield f'<p class="quiet">Shares are of {what}.</p>\n'
        yield _groups(explanation.groups, explanation.num_groups)
        return
    if isinstance(explanation, StackExplanation):
        for learner in explanation.learners:
            own = f"{learner.name}, weight {learner.weight:.2f}, adds {signed(learner.share)}"
            yield f"<h2>{_text(own)}</h2>\n"
            yield f'<p class="quiet">Its own score is {score_text(learner.score)}.</p>\n'
            if learner.explanation is None:
                yield '<p class="quiet">It shows no paths.</p>\n'
            else:
                if learner is not explanation.explained:  # whose summary stands above
                    yield f"<p>{_text(learner.explanation.summary)}</p>\n"
                yield from _sections(learner.explanation)
        return
    if isinstance(explanation, CombinedExplanation):
        for part in explanation.parts:
            why = part.explanation
            share = percent(part.share / explanation.score) if explanation.score else "0 %"
            yield f"<h2>{_text(why.metapath)}: {share} of the score</h2>\n<p>{_text(why.summary)}</p>\n"
            yield _groups(part.groups(explanation.score), why.num_groups)
        return
    formula = f"{explanation.measure} = {explanation.calculation}{_place(explanation)}"
    yield f'<p class="quiet">{_text(explanation.metapath)}: {_text(formula)}. {_text(explanation.cost or "")}</p>\n'
    yield _groups(explanation.groups, explanation.num_groups)
    if explanation.why_not is not None:
        yield f"<p>{_text(explanation.why_not.sentence)}</p>\n"


def _contributions(explanation: AttentionExplanation) -> str:
    """Show what raises and lowers the margin that is squashed to the score, all of it."""
    if explanation.base is None or explanation.margin is None:
        return ""
    largest = max((abs(each.value) for each in explanation.contributions), default=0.0)
    sums = f"{signed(explanation.base)} for any pair, and all that follows, add up to {signed(explanation.margin)}"
    head = f'<p class="quiet">{sums}; squashed to 0 to 1, that is {score_text(explanation.score)}.</p>\n'
    return head + "".join(_contribution(each, largest) for each in explanation.contributions)


def _contribution(each: Contribution, largest: float) -> str:
    side = " below" if each.value < 0 else ""
    return (
        f'<div><span class="share">{signed(each.value)}</span> {_text(each.name)}'
        f'<span class="bar{side}" style="width: {100 * abs(each.value) / largest:.1f}%"></span></div>\n'
    )


def _groups(groups: Sequence[PathGroup], num_groups: int) -> str:
    largest = max((group.share for group in groups), default=0.0)
    hidden = num_groups - len(groups)
    more = f'<p class="quiet">and {counted(hidden, "more node")}</p>\n' if hidden else ""
    return "".join(_group(group, largest) for group in groups) + more


def _group(group: PathGroup, largest: float) -> str:
    width = 100 * group.share / largest if largest else 0.0
    label = f"<bdi>{_text(group.node.label)}</bdi>"
    about = f'<span class="quiet">{_text(group.node.node_type)}, {counted(group.paths, "path")}</span>'
    hidden = group.paths - len(group.instances)
    more = f'<li class="quiet">and {counted(hidden, "more path")}</li>' if hidden else ""
    return (
        f'<details><summary><span class="share">{percent(group.share)}</span> {label} {about}'
        f'<span class="bar" style="width: {width:.1f}%"></span></summary>\n'
        f"<ol>{''.join(map(_instance, group.instances))}{more}</ol></details>\n"
    )


def _instance(instance: PathInstance) -> str:
    parts = [f"<bdi>{_text(instance.nodes[0].label)}</bdi>"]
    for link, node in zip(instance.links, instance.nodes[1:], strict=True):
        parts.append(f'<span class="link">{_text(link)}</span> <bdi>{_text(node.label)}</bdi>')
    return f'<li>{" ".join(parts)} <span class="quiet">{instance.share:.4g}</span></li>\n'


def _text(value: object) -> str:
    """Return a text of the graph as HTML; a character that is not printable becomes a space."""
    return escape("".join(character if character.isprintable() else " " for character in str(value)))
