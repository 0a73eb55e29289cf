"""Short names for what `django_jobkit.testing.plugin` has; many tests have others of these names."""

import pytest

pytest_plugins = ["django_jobkit.testing.plugin", "tests.redis_server", "tests.issuer"]


@pytest.fixture
def clock(jobkit_clock):
    return jobkit_clock


@pytest.fixture
def storage(jobkit_storage):
    return jobkit_storage


@pytest.fixture
def kit(jobkit, clock):
    return jobkit
