"""reproduce: the paper's tables and figures, made anew."""

from pathlib import Path
from typing import Annotated

import typer

from neupath.cli.console import err, out, print_json
from neupath.cli.options import Json
from neupath.progress import ProgressBars

_FOLDER = Path("reproduced")


def reproduce(
    parts: Annotated[list[str] | None, typer.Argument(metavar="[PART]...", help="Which parts; all by default.")] = None,
    folder: Annotated[Path, typer.Option("--out", help="The folder for results, tables and figures.")] = _FOLDER,
    data: Annotated[
        Path | None, typer.Option("--data", envvar="NEUPATH_DATA", help="A folder with imdb, and kg20c or ACM.mat.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A minute's version on the built-in graph.")] = False,
    seeds: Annotated[
        int | None, typer.Option("--seeds", help="How many seeds, which bars in figures are over; 3, or 1 if quick.")
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option("--models", help="Only these models, with commas between or one at a time.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", help="Runs carried out side by side.")] = 1,
    device: Annotated[str | None, typer.Option("--device", help="cpu or cuda; by default what there is.")] = None,
    as_json: Json = False,
) -> None:
    """Make the paper's tables and figures anew: every model on every column, and what the paper's protocol hides.

    Parts: rmse and ndcg (all models on all columns), ablation, paths (T), labels (how few do), runtime, chance (the
    audit of the metrics). Each writes CSV, Markdown and a figure, with the paper's printed numbers beside ours.

    --data names a folder with imdb, and kg20c or ACM.mat. Every run is kept as it is done: the same command goes on
    where it was interrupted, and a part that shares runs with another does not repeat them.

    Examples:
      neupath reproduce --quick --out quick

      neupath reproduce rmse ndcg --data graphs --out results --device cuda --jobs 12

    """
    from neupath.experiments import PARTS
    from neupath.experiments import reproduce as carry_out

    chosen = [name.strip() for given in models or () for name in given.split(",")]
    with ProgressBars(err).counter("runs") as bar:
        found = carry_out(
            parts or (), folder, data=data, quick=quick, seeds=seeds, models=chosen or None,
            jobs=jobs, device=device, progress=bar,
        )  # fmt: skip
    if as_json:
        print_json(found.to_dict())
        return
    before = f", {found.resumed:,} of them done before" if found.resumed else ""
    out.print(f"{found.runs:,} runs{before}, {found.seconds:,.0f} s")
    for part in parts or PARTS:
        out.print(f"{part}: {PARTS[part][0]}", highlight=False)
        print(f"  {folder / part}.md, .csv, .svg")
