"""What is done before the service starts."""

import gc

from neupath.engine import product_kernels as kernels
from neupath.live import query_kernels as live_kernels
from neupath.service.graphs import collecting_little, load_kernels


def test_the_collector_looks_at_nothing_that_was_there_before() -> None:
    with collecting_little():
        assert gc.get_freeze_count() > 0
        assert len(gc.get_objects()) < gc.get_freeze_count()
    assert gc.get_freeze_count() == 0


def test_the_kernels_of_a_search_are_loaded() -> None:
    load_kernels()
    assert live_kernels.top_k.signatures
    assert any(getattr(kernel, "signatures", ()) for kernel in vars(kernels).values())
