"""What the pages look like: the admin, where it is installed and mapped, else a plain page of the kit's own.

A site that wants its own look overrides the template ``django_jobkit/base.html``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.apps import apps
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite

ADMIN: Final = "admin/base_site.html"
STANDALONE: Final = "django_jobkit/standalone.html"


def look_for(request: HttpRequest, admin_site: AdminSite | None = None) -> dict[str, Any]:
    """The context that the base template wants; ``jobkit_base`` names it. ``admin_site`` is whose page it is."""
    if admin_site is not None:
        home = reverse("admin:index", current_app=admin_site.name)
        return {**admin_site.each_context(request), "jobkit_base": ADMIN, "jobkit_home": home}
    if not (apps.is_installed("django.contrib.admin") and hasattr(request, "user")):
        return {"jobkit_base": STANDALONE}
    try:
        home = reverse("admin:index")
    except NoReverseMatch:
        return {"jobkit_base": STANDALONE}
    from django.contrib.admin import site  # can't be imported where it isn't installed

    # Without the sidebar: its place is beside the admin's own pages.
    return {
        **site.each_context(request),
        "is_nav_sidebar_enabled": False,
        "jobkit_base": ADMIN,
        "jobkit_home": home,
    }
