"""serve: graphs and models over HTTP, with the explorer page; mcp: the same for assistants."""

import signal
import tomllib
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neupath._runtime.files import check_folder
from neupath.cli.terminal import DataFolder, GraphSource, takes_options
from neupath.errors import MissingExtraError, QueryError, did_you_mean, listed
from neupath.requests import option
from neupath.store import is_store

if TYPE_CHECKING:
    from neupath.service import graph_registry


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Read a TOML file of options, as defaults that the command line overrides."""
    if path is None:
        return None
    known = {str(parameter.name) for parameter in context.command.params} - {"config", "help"}
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise QueryError(f"cannot read --config {path}: {(error.strerror or str(error)).lower()}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise QueryError(f"--config {path} is not TOML: {error}") from error
    for name in content:
        if name not in known:
            raise QueryError(
                f"--config {path}: there is no option {name!r} (there are {listed(sorted(known), 20)})"
                f"{did_you_mean(name, known)}"
            )
    tables = {
        name: [f"{key}={value}" for key, value in table.items()]
        for name, table in content.items()
        if isinstance(table, dict)
    }
    context.default_map = {**content, **tables}
    return path


ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", is_eager=True, callback=_read_config,
        help="A TOML file with these options by their names, such as port = 8080; the command line overrides it.",
    ),
]  # fmt: skip


class ServiceAddress(DataFolder):
    """Where a service listens, and what it allows."""

    token: str | None = option("A secret that clients must send.", default=None, env="NEUPATH_TOKEN")
    limit: Sequence[str] = option("Change a limit, such as seconds=60 or job_bytes=4000000000.", default=())


class ServeOptions(ServiceAddress):
    """The options of `neupath serve`."""

    graph: Sequence[str] = option(
        "Graphs as for other commands; NAME=GRAPH gives one another name.", argument="[GRAPH]...", default=(),
        default_text="graph in the file of --config",
    )  # fmt: skip
    host: str = option("The address to serve at; any other than this needs a token.", default="127.0.0.1")
    port: int = option("The port; 0 picks a free one.", default=8000)
    model: Sequence[str] = option("A saved model to serve, NAME=FOLDER.", default=())
    state: Path | None = option("A folder for the results of jobs; a temporary one by default.", default=None)
    writable: bool = option("Let clients update the stores; otherwise they are read-only.", default=False)


class McpOptions(ServiceAddress):
    """The options of `neupath mcp`."""

    graph: Sequence[str] = option(
        "Graphs as for other commands; NAME=GRAPH gives one another name.", argument="GRAPH..."
    )
    port: int | None = option("Speak HTTP at this port instead of standard input; 0 picks a free one.", default=None)
    host: str = option("The address for --port; any other than this needs a token.", default="127.0.0.1")


@takes_options
def serve(options: ServeOptions, config: ConfigOption = None) -> None:  # noqa: ARG001
    """Serve graphs over HTTP, with an explorer page for a browser.

    A store is served as it is when the service starts. With --writable it takes
    updates over HTTP, and searches see them at once; no other process can open
    it meanwhile.

    Examples:
      neupath serve stdlib
      neupath serve movies=imdb/ --port 8080 --model mine=model/
      neupath serve library.store --writable
      neupath serve --config serve.toml
    """
    try:
        from neupath.service import app, graph_registry, limits, server
        from neupath.service import middleware as guard
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "neupath[serve]") from error
    if not options.graph:
        raise QueryError("no GRAPH is given; name one, such as stdlib, or give --config with a file that has graph")
    _check_address(options.host, options.token)
    bounds = replace(limits.Limits(), **_read_limits(limits.Limits(), options.limit))
    names = _read_names("GRAPH", options.graph, own_name=True)
    models = {name: Path(folder) for name, folder in _read_names("--model", options.model, own_name=False).items()}
    if options.writable and not any(is_store(Path(source)) for source in names.values()):
        raise QueryError(
            f"--writable needs a store, but none is served ({listed(names.values())}); make one with: "
            f"neupath import GRAPH --to STORE"
        )
    bound = server.bind(options.host, options.port)
    with ExitStack() as stack:
        stack.callback(bound.close)
        folder = (
            Path(stack.enter_context(TemporaryDirectory(prefix="neupath-"))) if options.state is None else options.state
        )
        check_folder(folder)
        served = {name: _open(name, source, options.writable, options.data, stack) for name, source in names.items()}
        running = app.make_service(served, models, folder, bounds)
        running.registry.warm_up()
        ready = app.make_app(running, options.token, guard.allowed_hosts(options.host))
        banner = f"serving {listed(served)} at {server.address_of(bound)} (open it in a browser; Ctrl+C stops)"
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that temporary files are removed
        with suppress(KeyboardInterrupt), graph_registry.frozen_garbage_collection():
            server.make_server(ready, running, lambda: print(banner, flush=True)).run([bound])
    running.exit_if_busy()  # temporary files are removed by now


@takes_options
def mcp(options: McpOptions) -> None:
    """Offer graphs to an assistant as MCP tools: describe, find, neighbours, search, explain, relate, infer.

    An assistant starts this command itself and speaks to it over standard input
    and output; with --port it serves any number of clients over HTTP, within the
    limits of 'neupath serve'. Graphs are read-only.

    Examples:
      neupath mcp stdlib
      neupath mcp movies=imdb/ --port 8001
    """
    try:
        from neupath.service import app, limits, mcp_server, server
        from neupath.service import middleware as guard
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "neupath[mcp]") from error
    _check_address(options.host, options.token)
    bounds = replace(limits.Limits(), **_read_limits(limits.Limits(), options.limit))
    names = _read_names("GRAPH", options.graph, own_name=True)
    with ExitStack() as stack:
        bound = None if options.port is None else stack.enter_context(closing(server.bind(options.host, options.port)))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="neupath-")))
        served = {name: _open(name, source, False, options.data, stack) for name, source in names.items()}
        running = app.make_service(served, {}, folder, bounds)
        stack.callback(running.close)
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that temporary files are removed
        with suppress(KeyboardInterrupt):
            if bound is None:
                mcp_server.make_mcp(running).run("stdio")
            else:
                ready = mcp_server.make_mcp_app(running, options.token, guard.allowed_hosts(options.host))
                banner = f"serving {listed(served)} to assistants at {server.address_of(bound)}{mcp_server.PATH}"
                server.make_server(ready, running, lambda: print(banner, flush=True)).run([bound])
    running.exit_if_busy()


def _check_address(host: str, token: str | None) -> None:
    """Refuse an address that other machines reach without a token, and a token that is easily guessed."""
    from neupath.service.middleware import is_loopback

    if not is_loopback(host) and not token:
        raise QueryError(
            f"{host} can be reached from other machines; set a --token (or NEUPATH_TOKEN) that clients need"
        )
    if token is not None and (len(token) < 8 or not token.isascii() or not token.isprintable() or " " in token):
        raise QueryError("the token is too short or has odd characters; use at least 8 letters and digits")


def _open(
    name: str, source: str, writable: bool, data: Path | None, stack: ExitStack
) -> "graph_registry.GraphHandle | graph_registry.StoreHandle":
    """Read a graph, or open a store."""
    from neupath.live import LiveStore
    from neupath.service import graph_registry

    if is_store(Path(source)):
        live = stack.enter_context(LiveStore(source, read_only=not writable))
        return graph_registry.StoreHandle(name, live)
    return graph_registry.GraphHandle(name, GraphSource(graph=source, data=data).load())


def _read_names(option: str, texts: Sequence[str], *, own_name: bool) -> dict[str, str]:
    """Read NAME=VALUE; with `own_name`, a value alone is named after its file or folder."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if own_name and (not equals or "://" in name):  # a URL may have parameters
            name, value = Path(text.partition("?")[0]).name.split(".")[0], text
        if not name or not value or not name.isprintable() or set(name) & set("/?#%\\") or name in (".", ".."):
            raise QueryError(
                f"{option} {text!r} cannot be served; write NAME=VALUE, with a name that fits into an address"
            )
        if name in values:
            raise QueryError(f"{option} has two values named {name!r}; rename one with NAME=VALUE")
        values[name] = value
    return values


def _read_limits(limits: Any, texts: Sequence[str]) -> dict[str, Any]:
    """Read NAME=NUMBER for limits of the service."""
    known = {field.name: type(getattr(limits, field.name)) for field in fields(limits)}
    values: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in known:
            raise QueryError(f"no limit {name!r} (there are {listed(known, 30)}){did_you_mean(name, known)}")
        try:
            values[name] = known[name](value)
        except ValueError:
            values[name] = 0
        if not 0 < values[name] < 2**62:
            kind = "whole number" if known[name] is int else "number"
            raise QueryError(f"the limit {name} is {value!r}; it must be a {kind} above 0")
    return values
