"""An at-least-once queue with worker processes that are killed and paused; see ``tests/test_leases.py``."""
