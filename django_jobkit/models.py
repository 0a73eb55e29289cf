"""A model without a table, so that Django has permissions and a name for jobs."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .jobs import ids


class Job(models.Model):
    """Stands for the jobs wherever Django wants a model: for ``view_job`` and the other permissions, and in the admin.

    Unmanaged: `migrate` makes no table for it, only its content type and its permissions (it does so for every
    model that a migration names, managed or not). Nothing is ever queried through it; a job's record is its file.
    """

    job_id = models.CharField(_("job ID"), max_length=ids.MAX_LENGTH, primary_key=True)

    class Meta:
        managed = False
        verbose_name = _("job")
        verbose_name_plural = _("jobs")
        # Not the four of every model: nobody changes a job through Django.
        default_permissions = ()
        permissions = [
            ("view_job", "Can view jobs"),
            ("add_job", "Can submit jobs"),
            ("delete_job", "Can delete jobs"),
            ("retry_job", "Can retry jobs"),
        ]

    def __str__(self) -> str:
        return self.job_id
