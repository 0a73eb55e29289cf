from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.utils.translation import gettext_lazy as _


class JobKitConfig(AppConfig):
    name = "django_jobkit"
    verbose_name = _("Jobs")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from .checks import check_settings

        checks.register(check_settings, "jobkit")
        if getattr(settings, "TASKS", None):
            from .backends import startup

            startup.connect()
