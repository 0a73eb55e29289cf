"""The rules of a job: its ID, its status, who may overwrite it, and how jobs are listed. Imports no Django."""

from __future__ import annotations

from . import ids
from .caching import IDListCache, TTLCache
from .history import HistoryRow, JobHistory, Page
from .listing import collect
from .paging import PageMeta, adjust_item_count, load_page, select_ids
from .recorder import Recorder
from .status import JobStatus, State, Status, json_field
from .store import StatusStore, under_job_dir

__all__ = [
    "HistoryRow",
    "IDListCache",
    "JobHistory",
    "JobStatus",
    "Page",
    "PageMeta",
    "Recorder",
    "State",
    "Status",
    "StatusStore",
    "TTLCache",
    "adjust_item_count",
    "collect",
    "ids",
    "json_field",
    "load_page",
    "select_ids",
    "under_job_dir",
]
