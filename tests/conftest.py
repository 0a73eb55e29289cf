"""Short names for what `django_jobkit.testing.plugin` has; many tests have others of these names."""

import pytest
from django.core.servers.basehttp import WSGIRequestHandler

pytest_plugins = ["django_jobkit.testing.plugin", "tests.redis_server", "tests.issuer"]


@pytest.fixture(scope="session", autouse=True)
def _answers_leave_at_once():
    """Django's server writes the head and the body of an answer separately. On a connection that is kept, the body
    would wait for the other side to acknowledge the head, which takes 40 ms (Nagle's algorithm)."""
    WSGIRequestHandler.disable_nagle_algorithm = True


@pytest.fixture
def clock(jobkit_clock):
    return jobkit_clock


@pytest.fixture
def storage(jobkit_storage):
    return jobkit_storage


@pytest.fixture
def kit(jobkit, clock):
    return jobkit
