"""Where somebody unknown is sent, and how a forged request is told from one that a person has sent."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import global_settings, settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.middleware.csrf import CsrfViewMiddleware
from django.shortcuts import resolve_url
from django.urls import NoReverseMatch, is_valid_path, reverse

if TYPE_CHECKING:
    from django.contrib.admin import AdminSite


def login_redirect(request: HttpRequest, admin_site: AdminSite | None = None) -> HttpResponse:
    """To the login page, and from there back here.

    That is the admin's for a page in it, elsewhere LOGIN_URL; where that is left at Django's default and the site has
    no such page, the admin's login page.
    """
    parts = urlsplit(resolve_url(settings.LOGIN_URL))
    if admin_site is not None:
        parts = urlsplit(reverse("admin:login", current_app=admin_site.name))
    elif settings.LOGIN_URL == global_settings.LOGIN_URL and not is_valid_path(settings.LOGIN_URL):
        with suppress(NoReverseMatch):
            parts = urlsplit(reverse("admin:login"))
    elsewhere = parts.netloc and parts.netloc != request.get_host()
    query = QueryDict(parts.query, mutable=True)
    query[REDIRECT_FIELD_NAME] = request.build_absolute_uri() if elsewhere else request.get_full_path()
    return HttpResponseRedirect(parts._replace(query=query.urlencode(safe="/")).geturl())


class _CsrfCheck(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return reason


def csrf_failure(request: HttpRequest) -> str:
    """Why the request may be forged, as Django's CSRF middleware would find; empty if it isn't.

    For JSON views, which are exempt from the middleware: its answer is a page.
    """
    check = _CsrfCheck(lambda request: HttpResponse())
    check.process_request(request)
    return str(check.process_view(request, lambda: HttpResponse(), (), {}) or "")
