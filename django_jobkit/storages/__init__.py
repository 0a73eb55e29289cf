"""Where a job's files live: one contract, one adapter for each kind of place."""

from django_jobkit.jobs.files import ABSENT, ANY, Expect, IfVersion, JobStorage, StoredFile
from django_jobkit.storages.selection import adapt, from_settings

__all__ = ["ABSENT", "ANY", "Expect", "IfVersion", "JobStorage", "StoredFile", "adapt", "from_settings"]
