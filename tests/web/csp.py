"""A policy under which a page can run no script and no style but files of its own site."""

from __future__ import annotations

import django

POLICY = {
    "default-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    "img-src": ["'self'"],
    "connect-src": ["'self'"],
    "form-action": ["'self'"],
    "base-uri": ["'none'"],
    "frame-ancestors": ["'none'"],
    "require-trusted-types-for": ["'script'"],
}


def policy_middleware(get_response):
    """For Django 5.2, which has no middleware for this."""

    def middleware(request):
        response = get_response(request)
        policy = "; ".join(f"{name} {' '.join(values)}" for name, values in POLICY.items())
        response.headers.setdefault("Content-Security-Policy", policy)
        return response

    return middleware


def switch_on(settings) -> None:
    """Send the policy with every page, by Django's own middleware where there is one."""
    if django.VERSION >= (6, 0):
        settings.SECURE_CSP = POLICY
        middleware = "django.middleware.csp.ContentSecurityPolicyMiddleware"
    else:
        middleware = "tests.web.csp.policy_middleware"
    settings.MIDDLEWARE = [middleware, *settings.MIDDLEWARE]


def nonce(request):
    """A context processor for Django 5.2, which has none for this."""
    return {"csp_nonce": "abc"}


def switch_on_nonces(settings) -> None:
    """Allow only the scripts and style sheets that carry the page's nonce, by Django's own means."""
    processor = "tests.web.csp.nonce"
    if django.VERSION >= (6, 0):
        from django.utils.csp import CSP

        settings.SECURE_CSP = {"script-src": [CSP.NONCE], "style-src": [CSP.NONCE]}
        settings.MIDDLEWARE = ["django.middleware.csp.ContentSecurityPolicyMiddleware", *settings.MIDDLEWARE]
        processor = "django.template.context_processors.csp"
    [engine] = settings.TEMPLATES
    processors = [*engine["OPTIONS"]["context_processors"], processor]
    settings.TEMPLATES = [{**engine, "OPTIONS": {**engine["OPTIONS"], "context_processors": processors}}]
