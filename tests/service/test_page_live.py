"""The explorer over a store that changes while it is looked at."""

from pathlib import Path

import neupath as npth
from neupath.live import LiveStore
from neupath.store import write_store
from tests.service.browser import explore, needs_chromium, open_browser
from tests.service.conftest import Start

pytestmark = needs_chromium
WORDS = {"g": "live", "p": "author-paper-author", "q": "Mike", "qt": "author"}
EDGE = {"relation": "writes", "source": "Mike", "target": "Jim-SIGMOD-1"}


def test_an_update_is_shown_with_its_version(start: Start, tmp_path: Path) -> None:
    with LiveStore(write_store(npth.load("toy"), tmp_path / "live")) as live, open_browser() as browser:
        running = start(graphs={"live": live})
        with explore(browser, running.url) as explorer:
            explorer.open(**WORDS)
            explorer.see("#found").to_contain_text("version 0")
            assert running.post("/api/graphs/live/updates", {"add_edges": [EDGE]}).json()["version"] == 1
            explorer.open(**WORDS)
            explorer.see("#found").to_contain_text("1 hit, exact")
            explorer.see("#found").to_contain_text("version 1")
            assert explorer.hits() == ["Jim"]
            explorer.hit("Jim").click()
            explorer.see("#why").to_contain_text("Jim-SIGMOD-1")
