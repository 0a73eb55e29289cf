"""Machines that come with an identity token of Google's, in ``Authorization: Bearer …``, instead of a login."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.views.decorators.debug import sensitive_variables

from .access import Access, Action
from .exceptions import AccountRefused, KeysUnavailable, TokenRefused
from .oidc import Identity, IdentityTokenVerifier
from .signing_keys import SigningKeys

_FOUND = "_jobkit_identities"


@sensitive_variables()
def bearer_token(request: HttpRequest) -> str | None:
    """The token of the request's ``Authorization`` header; None if that is absent or of another scheme."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip(" ") if scheme.lower() == "bearer" else None


class GoogleTokenAccess(Access):
    """Lets in service accounts with an identity token (OIDC) that Google signed for this site.

    ``audience`` and ``accounts`` are as for `IdentityTokenVerifier`, and neither may be missing. The accounts may see
    all jobs, and do nothing else; with a dict, each may do what stands beside it::

        GoogleTokenAccess(
            audience="https://jobs.example.com/",
            accounts={"cleaner@my-project.iam.gserviceaccount.com": ["view", "delete"]},
        )

    No CSRF token is asked for: no browser sends the header on behalf of another site's page. Where people come, too,
    put it before the class for them, in a `FirstOf`. Behind Cloud Run's own check of ``Authorization``, which hands on
    tokens without their signature, send the token for Cloud Run as ``X-Serverless-Authorization``.
    """

    challenge = 'Bearer realm="jobs"'
    default_actions: ClassVar[Collection[Action]] = (Action.VIEW,)

    def __init__(
        self,
        *,
        audience: str | Collection[str],
        accounts: str | Collection[str] | Mapping[str, Collection[str]],
        keys: SigningKeys | None = None,
    ) -> None:
        self.verifier = IdentityTokenVerifier(audience=audience, accounts=accounts, keys=keys)
        self.actions = {
            account: _actions(accounts[account] if isinstance(accounts, Mapping) else self.default_actions, account)
            for account in self.verifier.accounts
        }

    def identity(self, request: HttpRequest) -> Identity | None:
        """Who the request's token proves to be asking; None if it has none. Raises as `IdentityTokenVerifier.verify`.

        A token is verified once per request, however often this is asked.
        """
        if (token := bearer_token(request)) is None:
            return None
        found = request.__dict__.setdefault(_FOUND, {})
        if self not in found:
            found[self] = self._verified(token)
        if isinstance(found[self], Exception):
            raise found[self]
        identity: Identity = found[self]
        return identity

    @sensitive_variables()
    def _verified(self, token: str) -> Identity | TokenRefused | AccountRefused | KeysUnavailable:
        try:
            return self.verifier.verify(token)
        except (TokenRefused, AccountRefused, KeysUnavailable) as error:
            return error

    def allows(self, request: HttpRequest, action: Action) -> bool:
        """Raises `TokenRefused` (401) and `KeysUnavailable` (503)."""
        try:
            identity = self.identity(request)
        except AccountRefused:
            return False
        return identity is not None and action in self.actions[identity.email]

    def known(self, request: HttpRequest) -> bool:
        try:
            return self.identity(request) is not None
        except AccountRefused:
            return True

    def name_of(self, request: HttpRequest) -> str:
        """The account's e-mail address."""
        identity = self.identity(request)
        return "" if identity is None else identity.email

    def challenge_for(self, request: HttpRequest) -> str:
        try:
            self.identity(request)
        except TokenRefused as error:
            return f'{self.challenge}, error="invalid_token", error_description="{error}"'  # RFC 6750, 3
        except (AccountRefused, KeysUnavailable):
            pass
        return self.challenge

    def recognizes(self, request: HttpRequest) -> bool:
        return bearer_token(request) is not None

    def needs_csrf_token(self, request: HttpRequest) -> bool:
        return bearer_token(request) is None


def _actions(names: str | Collection[str], account: str) -> frozenset[Action]:
    try:
        return frozenset(Action(name) for name in ([names] if isinstance(names, str) else names))
    except (TypeError, ValueError) as error:
        raise ImproperlyConfigured(
            f"accounts[{account!r}] is {names!r}, not a list of actions: {', '.join(Action)}."
        ) from error
