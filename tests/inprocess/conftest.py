from __future__ import annotations

import threading

import pytest

from django_jobkit.inprocess import JobQueue


@pytest.fixture
def make_queue():
    """Queues that are stopped at the end of the test, leaving no thread behind."""
    queues = []

    def make(*args, **kwargs):
        queues.append(JobQueue(*args, name=f"test-{id(queues)}", **kwargs))
        return queues[-1]

    yield make
    for queue in queues:
        queue.stop(0, grace=20)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(f"test-{id(queues)}")]
