"""The graph and the exact measure of the tests of models, and the plug-in that these tests are of."""

import pytest

from neupath.learn.registry import ARCHITECTURES
from tests.learn.models.conftest import hin, teacher

__all__ = ["hin", "teacher"]


@pytest.fixture(scope="session", autouse=True)
def _registered() -> None:
    """An editable install of before neupath_paper knows no entry points of it."""
    assert "countpath" in ARCHITECTURES, "install neupath again, as make test does: its entry points have changed"
