"""The command line: each command parses its options, makes one library call and renders the result.

Commands stand by groups in `search_commands`, `explain_commands`, `join_command`, `infer_command`, `train_commands`,
`store_commands`, `serve_command` and `demo`. `program` lists them, imports the one that is run, and has `main`;
`terminal` has what they share. May import every room.
"""

from neupath.cli.program import app, main

__all__ = ["app", "main"]
