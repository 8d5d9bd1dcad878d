"""The machine and the process: what is the same for every graph.

`files` writes files whole or not at all, and locks them. `DiskCache` keeps arrays by key in a folder. `resources`
counts cores and memory. `GroupCommit` lets one thread do the work of all that wait. `Progress` reports how far long
work is. `Registry` knows things by name, with those of `Plugins`. May import errors alone.
"""

import logging

logging.getLogger("neupath").addHandler(logging.NullHandler())  # an application decides what becomes of messages


def log_to_stderr() -> None:
    """Print warnings of neupath on standard error, where this process, a program of its own, has no other log."""
    if not logging.getLogger().handlers and logging.lastResort is not None:
        logging.getLogger("neupath").addHandler(logging.lastResort)
