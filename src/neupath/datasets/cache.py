"""Where built and downloaded graphs are kept."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return NEUPATH_CACHE, or neupath in the user's cache folder."""
    given = os.environ.get("NEUPATH_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "neupath"
