"""The command of this package, for the entry point in pyproject.toml: where it is, and its summary."""

REPRODUCE = (
    "neupath_paper.reproduce_command:reproduce",
    "Reproduce the paper's tables and figures: every model on every column, and what the paper's protocol hides.",
)
