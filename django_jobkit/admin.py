"""The kit's pages inside Django's admin: an entry on its index and in its sidebar for each kit, and nothing to map.

The entries are models without tables, and their "change lists" are the kit's own pages, under the admin's URLs. Of
the admin, only what Django documents is used: `register`, a `ModelAdmin`'s ``get_urls`` and its questions for
permissions.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar

from django.apps.registry import Apps
from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import NoReverseMatch, URLPattern, URLResolver, include, path, reverse
from django.utils.functional import lazy
from django.utils.translation import gettext as _

from . import conf, urls
from .access import Action
from .kit import jobkits
from .models import Job
from .web.links import APP_NAME
from .web.responses import HANDLED

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[models.Model]
else:
    _ModelAdmin = admin.ModelAdmin


class KitAdmin(_ModelAdmin):
    """The entry of one kit. The kit's access object says who sees it, beside the admin's own rule."""

    kit_alias: ClassVar[str]
    namespaces: ClassVar[dict[str, str]]
    """Of the pages of each kit, below that of the admin."""

    def get_urls(self) -> list[URLPattern | URLResolver]:  # type: ignore[override]
        views = urls.patterns(admin_site=self.admin_site)
        name = f"{self.opts.app_label}_{self.opts.model_name}"
        return [
            # Where the admin's log links to; before the pages, which take any text for a job's ID.
            path("<str:object_id>/change/", self.admin_site.admin_view(self._to_job), name=f"{name}_change"),
            path("", include((views, APP_NAME), namespace=self.namespaces[self.kit_alias]), {"kit": self.kit_alias}),
            # Never reached, only reversed: the same URL as the history's, by the name that the admin knows.
            path("", self._to_job, name=f"{name}_changelist"),
        ]

    def _to_job(self, request: HttpRequest, object_id: str = "") -> HttpResponse:
        kit, _colon, job_id = unquote(object_id).rpartition(":")
        namespace = self.namespaces.get(kit or self.kit_alias, APP_NAME)
        try:
            return HttpResponseRedirect(
                reverse(f"admin:{namespace}:detail", args=[job_id], current_app=self.admin_site.name)
            )
        except NoReverseMatch as error:
            raise Http404 from error

    # --- permissions: jobs can be looked at here, and all else is done on the kit's pages ---------------------------

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        try:
            return jobkits[self.kit_alias].access.allows(request, Action.VIEW)
        except HANDLED:
            return False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def register(site: admin.AdminSite = admin.site) -> None:
    """Give an admin site an entry for each kit. `django.contrib.admin.site` has them already."""
    models_of: dict[str, type[models.Model]] = {}
    for alias in conf.aliases():
        models_of[alias] = _model_for(alias, {model.__name__ for model in models_of.values()}) if models_of else Job
    namespaces = {
        alias: APP_NAME if model is Job else f"{APP_NAME}-{model._meta.model_name}"
        for alias, model in models_of.items()
    }
    for alias, model in models_of.items():
        site.register(model, type("KitAdmin", (KitAdmin,), {"kit_alias": alias, "namespaces": namespaces}))


def _model_for(alias: str, taken: Collection[str]) -> type[models.Model]:
    """A name for one more kit, as the admin wants one. In a registry of its own, so that nobody migrates it."""
    slug = re.sub("[^a-z0-9]+", "_", alias.lower()).strip("_")
    name = base = f"job_{slug}" if slug else "job_kit"
    while name in taken:
        name = f"{base}_{len(taken) + 2}"
    text = lazy(lambda: _("jobs (%(kit)s)") % {"kit": alias}, str)()
    meta = type(
        "Meta",
        (),
        {
            "managed": False,
            "app_label": Job._meta.app_label,
            "apps": Apps(),
            "verbose_name": text,
            "verbose_name_plural": text,
            "default_permissions": (),
        },
    )
    members = {"__module__": __name__, "Meta": meta, "job_id": models.CharField(primary_key=True, max_length=128)}
    return type(name, (models.Model,), members)


register()
