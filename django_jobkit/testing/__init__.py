"""For the tests of sites that use the kit: jobs in memory, run at once, on a storage that fails when told to.

The fixtures for pytest are in `django_jobkit.testing.plugin`; nothing else here needs pytest.
"""

from .assertions import assert_job
from .clock import FrozenClock
from .faults import FaultyStorage
from .memory import MemoryKit, memory_kit

__all__ = ["FaultyStorage", "FrozenClock", "MemoryKit", "assert_job", "memory_kit"]
