"""The service: everything the library can do over HTTP, and the explorer page; needs the extra `serve`.

`app` puts a service together and has its routes, `handlers` what they call, `schemas` what requests hold;
`graph_registry` holds the graphs, models and cached scorers; `jobs` and `job_process` do long work; `middleware` and
`limits` refuse what is wrong or too much; `light_search` answers light searches on the event loop; `server` runs it
all. May import every room but `cli`.
"""
