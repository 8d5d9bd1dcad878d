"""What can be wrong with a table or a row of it, whichever way it is read; a place is the file and the line."""

import csv
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from neupath.errors import GraphError, SourceError, first_line


def empty_id(place: str) -> GraphError:
    """Say that a node has no id."""
    return GraphError(f"{place}: the node has an empty id; every node needs one")


def repeated_id(place: str, value: object) -> GraphError:
    """Say that two nodes have one id."""
    return GraphError(f"{place}: node id {value!r} is given a second time; node ids must be unique")


def empty_word(place: str, what: str) -> GraphError:
    """Say that a type or a relation is not named."""
    return GraphError(f"{place}: the {what} is empty; every row needs one")


def empty_end(place: str, node_type: str) -> GraphError:
    """Say that an edge does not name its end."""
    return GraphError(f"{place}: the edge has an empty {node_type} id")


def lost_end(place: str, node_type: str, value: object, where: str, count: int) -> GraphError:
    """Say that an edge leads to a node that is not there."""
    return GraphError(
        f"{place}: the edge leads to {node_type} {value!r}, which is not in the {where} "
        f"({count:,} such edge ends in all); add it there, or leave the edge out"
    )


def table_of(node_type: str) -> str:
    """Say which table edges must lead to."""
    return f"node table of {node_type}"


def bad_weight(place: str, value: object) -> GraphError:
    """Say that a weight is none."""
    comma = re.fullmatch(r"[0-9.]*,[0-9]+", str(value).strip())
    hint = ", with a point and no comma in them" if comma else ""
    return GraphError(f"{place}: weight {value!r} is not allowed; weights are finite numbers, 0 or more{hint}")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn what the system says of a file into a sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise SourceError(f"no such file: {path}") from error
    except PermissionError as error:
        raise SourceError(f"no permission to read {path}") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(f"{path} is a damaged gzip file ({error}); make it or fetch it again") from error
    except (pa.ArrowException, csv.Error) as error:
        raise SourceError(f"{path} cannot be read: {first_line(error)}") from error
    except OSError as error:
        raise SourceError(f"{path} cannot be read, it may be cut short: {first_line(error)}") from error
