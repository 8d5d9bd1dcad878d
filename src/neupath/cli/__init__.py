"""The command line: each command parses its options, makes one library call and renders the result.

Commands stand by groups in `search_commands`, `explain_commands`, `join_command`, `infer_command`, `train_commands`,
`store_commands`, `serve_command` and `demo`; `terminal` has what they share, and `main`, which runs one. May import
every room.
"""

from neupath.cli.demo import demo
from neupath.cli.explain_commands import whatif
from neupath.cli.infer_command import infer
from neupath.cli.join_command import join
from neupath.cli.search_commands import explain, find, info, paths, search
from neupath.cli.serve_command import serve
from neupath.cli.store_commands import check, datasets_app, export, import_, init, update
from neupath.cli.terminal import app, main
from neupath.cli.train_commands import evaluate, reproduce, train

__all__ = ["app", "main"]

for command in (
    demo, init, info, paths, find, search, explain, whatif, infer, join, train, evaluate, reproduce, serve, update,
    export, check,
):  # fmt: skip
    app.command()(command)
app.command("import")(import_)
app.add_typer(datasets_app, name="datasets")
