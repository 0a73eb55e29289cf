from __future__ import annotations

import logging

from django_jobkit.exceptions import PermanentJobError


class OurFaultsOnly(logging.Filter):
    """Leaves out what is wrong with somebody's file: that stands on the job's page, and nobody here can mend it."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], PermanentJobError))
