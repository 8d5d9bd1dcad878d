"""The machine and the process: what is the same for every graph.

`files` writes files whole or not at all, and locks them; `resources` counts cores and memory; `group_commit` lets one
thread do the work of all that wait; `progress` is how long work reports how far it is; `hashing` mixes bits. May import
errors alone.
"""
