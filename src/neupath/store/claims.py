"""Claims: who of this process writes to a store; the database keeps out other processes, and they alone."""

from pathlib import Path
from threading import Condition
from weakref import WeakValueDictionary

from neupath.errors import SourceError

_holders: "WeakValueDictionary[Path, object]" = WeakValueDictionary()
"""By folder: who writes to it; one that is forgotten without being closed writes no longer."""
_changed = Condition()


def claim(folder: Path, holder: object, patience: float) -> None:
    """Let nobody else of this process write, waiting some seconds for one who does."""
    place = folder.resolve()
    with _changed:
        if not _changed.wait_for(lambda: _holders.setdefault(place, holder) is holder, patience):
            raise SourceError(f"the store {folder} is open for writing in this process already; use that, or close it")


def give_up(holder: object) -> None:
    """Let others of this process write to what a holder has claimed."""
    with _changed:
        for place in [place for place, found in _holders.items() if found is holder]:
            del _holders[place]
        _changed.notify_all()
