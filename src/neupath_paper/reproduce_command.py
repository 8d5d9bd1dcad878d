"""reproduce: the paper's tables and figures, from the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from neupath.cli.terminal import JsonOption, ProgressBars, print_json, print_text, stdout, takes_options
from neupath.errors import QueryError
from neupath.requests import Device

_FOLDER = Path("reproduced")


@takes_options
def reproduce(
    parts: Annotated[list[str] | None, typer.Argument(metavar="[PART]...", help="Which parts; by default all.")] = None,
    out: Annotated[Path, typer.Option("--out", help="The folder for results, tables and figures.")] = _FOLDER,
    data: Annotated[
        Path | None, typer.Option("--data", envvar="NEUPATH_DATA", help="A folder with imdb, and kg20c or ACM.mat.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A version of one minute, on the built-in graph.")] = False,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="How many seeds the bars of figures are over; 3, or 1 with --quick.")
    ] = None,
    architectures: Annotated[
        list[str] | None,
        typer.Option("--architectures", help="Only these, and measures; separated by commas, or one at a time."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="How many runs are carried out at a time.")] = 1,
    budget: Annotated[float, typer.Option("--budget", help="Of real: about how many seconds auto may take.")] = 600.0,
    as_json: JsonOption = False,
    *,
    place: Device,
) -> None:
    """Reproduce the paper's tables and figures: every model on every column, and what the paper's protocol hides.

    Parts: rmse and ndcg (all models on all columns), ablation, paths (T),
    labels (how few are enough), runtime, chance (the audit of the metrics).
    Each writes CSV, Markdown and a figure, with the paper's printed numbers
    beside ours.

    The part real is made alone: every learner and auto on relations, classes
    and areas that are withheld from hetionet, kg20c, acm_hgb and imdb.

    Every finished run is kept: the same command resumes where it was
    interrupted, and parts share their runs.

    Examples:
      neupath reproduce --quick --out quick
      neupath reproduce rmse ndcg --data graphs --device cuda --jobs 12
      neupath reproduce real --data graphs --out real
    """
    if "real" in (parts or ()):
        given = {"--quick": quick, "--seeds": seeds, "--architectures": architectures, "--jobs": jobs != 1}
        for flag, is_given in given.items():
            if is_given:
                raise QueryError(f"the part real has no {flag}; leave it out")
        _reproduce_real(parts or (), out, data, budget, place.device, as_json)
        return
    from neupath_paper.reproduction import reproduce as carry_out
    from neupath_paper.runs import PARTS

    names = [name.strip() for text in architectures or () for name in text.split(",")]
    with ProgressBars() as bars:
        reproduced = carry_out(
            parts or (), out, data=data, quick=quick, seeds=seeds, architectures=names or None, jobs=jobs,
            device=place.device, progress=bars,
        )  # fmt: skip
    if as_json:
        print_json(reproduced.to_dict())
        return
    resumed = f", {reproduced.resumed:,} of them done before" if reproduced.resumed else ""
    print_text(f"{reproduced.runs:,} runs{resumed}, {reproduced.seconds:,.0f} s")
    for part in parts or PARTS:
        stdout.print(f"{part}: {PARTS[part][0]}", highlight=False)
        print_text(f"  {out / part}.md, .csv, .svg")


def _reproduce_real(
    parts: Sequence[str], out: Path, data: Path | None, budget: float, device: str | None, as_json: bool
) -> None:
    from neupath_paper.real_labels import reproduce_real

    if len(parts) > 1:
        raise QueryError("the part real is made alone; leave out the others, or leave out real")
    with ProgressBars() as bars:
        runs = reproduce_real(out, data, budget=budget, device=device, progress=bars)
    if as_json:
        print_json([dict(vars(run)) for run in runs])
    else:
        print_text(f"{len(runs):,} runs\n  {out / 'real.md'}, {out / 'real.jsonl'}")
