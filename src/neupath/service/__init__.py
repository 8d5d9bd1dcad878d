"""The service: everything the library can do over HTTP, and the explorer page; needs the extra `serve`.

`graph_registry` holds the graphs, models and cached scorers; `app` has the routes, `handlers` what they call, `schemas`
what requests hold; `jobs` and `job_process` do long work; `middleware` and `limits` refuse what is wrong or too much;
`fast_path` answers light searches; `server` runs it all. May import every room but `cli`.
"""
