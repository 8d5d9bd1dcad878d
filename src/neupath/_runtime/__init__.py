"""The machine and the process: what is the same for every graph.

`files` writes files whole or not at all, and locks them. `DiskCache` keeps arrays by key in a folder. `resources`
counts cores and memory. `GroupCommit` lets one thread do the work of all that wait. `Progress` reports how far long
work is. `Registry` knows things by name, with those of `Plugins`. May import errors alone.
"""
