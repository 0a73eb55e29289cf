"""What other apps can listen to.

Receivers run in the thread that saved or deleted, after the storage has been written. What they raise is logged by
Django and reaches nobody else: a listener never fails a job.
"""

from __future__ import annotations

from django.dispatch import Signal

status_saved = Signal()
"""Sent after a status was saved. ``sender`` is its class; ``kit`` (the alias), ``job_id`` and ``status`` (as saved;
don't change it)."""

status_deleted = Signal()
"""Sent after a job or its status was deleted. ``sender`` is the kit's class; ``kit`` (the alias) and ``job_id``."""
