from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class JobKitConfig(AppConfig):
    name = "django_jobkit"
    verbose_name = _("Jobs")
