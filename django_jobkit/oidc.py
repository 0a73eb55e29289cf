"""Google's identity tokens: who is asking, as a signature proves it.

Both things that a token may be mistaken in are asked for when a verifier is made: whom it is meant for (the audience)
and which accounts may come with one. Anybody can get a token from Google, for an account and an audience of their own.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from django.core.exceptions import ImproperlyConfigured
from django.views.decorators.debug import sensitive_variables

from .exceptions import AccountRefused, TokenRefused
from .signing_keys import SigningKeys

ISSUERS: Final = ("https://accounts.google.com", "accounts.google.com")
ALGORITHM: Final = "RS256"
LONGEST_TOKEN: Final = 8192
"""Characters; Google's have about a thousand."""

# JWS Compact Serialization: three parts of unpadded base64url (RFC 7515, 7.1).
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")

REASONS: Final = {
    "malformed": "The token is no signed JWT.",
    "algorithm": f"The token has to be signed with {ALGORITHM}.",
    "unknown_key": "The token is signed with a key that is none of the issuer's.",
    "signature": "The token's signature is wrong.",
    "issuer": "The token is not from Google.",
    "audience": "The token is meant for another audience.",
    "expired": "The token has expired.",
    "not_yet_valid": "The token is not valid yet.",
    "email": "The token holds no verified e-mail address.",
}
"""Why a token is refused, as `TokenRefused.reason` and its text."""

_LATEST: Final = 1e11  # seconds; some thousand years from now

logger = logging.getLogger("django_jobkit.oidc")


@dataclass(frozen=True, slots=True)
class Identity:
    """Who is asking. ``subject`` is the account's number, which stays when an address is given to somebody else."""

    email: str
    subject: str
    audience: str


class IdentityTokenVerifier:
    """Verifies the identity tokens (OIDC, RS256) that Google signs for service accounts.

    ``audience`` is what the caller asked the token for, usually this site's URL; ``accounts`` are the e-mail addresses
    of the accounts that are let in. Each is one text or several, and none of them may be missing: raises
    ImproperlyConfigured. ``clock_skew`` is by how many seconds clocks may differ. ``keys`` are Google's.

    Needs google-auth. Safe to share between threads.
    """

    def __init__(
        self,
        *,
        audience: str | Collection[str],
        accounts: str | Collection[str],
        keys: SigningKeys | None = None,
        clock_skew: float = 10.0,
    ) -> None:
        self.audiences = _several(audience, "audience", "what its callers ask their tokens for, as this site's URL")
        self.accounts = _several(accounts, "accounts", "the e-mail addresses of the accounts that are let in")
        for account in self.accounts:
            if not re.fullmatch(r"[^@*\s]+@[^@*\s]+", account):
                raise ImproperlyConfigured(f"accounts: {account!r} is no e-mail address.")
        self.keys = SigningKeys() if keys is None else keys
        self.clock_skew = clock_skew
        try:
            import google.auth.jwt
            import google.auth.transport.requests  # noqa: F401  for the keys
        except ImportError as error:
            raise ImproperlyConfigured(
                f'Identity tokens need google-auth. Run: pip install "django-jobkit[oidc]" ({error})'
            ) from error

    @sensitive_variables()
    def verify(self, token: str) -> Identity:
        """Who the token proves to be asking.

        Raises `TokenRefused` for a token that isn't valid here, `AccountRefused` for a valid one of another account,
        and `KeysUnavailable` when the keys to verify it with can't be fetched.
        """
        key_id, claims = self._read(token)
        # What can be told without the key comes first, so that a token that is hopeless anyway costs no fetch.
        self._check(claims)
        if (certificate := self.keys.get(key_id)) is None:
            _refuse("unknown_key")
        if not self._is_signed(token, {key_id: certificate}):
            _refuse("signature")
        email: str = claims["email"]
        if email not in self.accounts:
            logger.warning("a valid token of %a was refused: the account is none of those that are let in", email)
            raise AccountRefused(f"{email!a} is none of the accounts that are let in.")
        return Identity(email=email, subject=str(claims.get("sub", "")), audience=claims["aud"])

    @sensitive_variables()
    def _read(self, token: str) -> tuple[str, Mapping[str, Any]]:
        """The key's ID and the claims, as yet unproven."""
        from google.auth import jwt

        if len(token) > LONGEST_TOKEN or not _COMPACT.fullmatch(token):
            _refuse("malformed")
        try:
            header = jwt.decode_header(token)  # type: ignore[no-untyped-call]
            claims = jwt.decode(token, verify=False)  # type: ignore[no-untyped-call]
        except (ValueError, RecursionError):
            header = None
        # The error would have been chained to the refusal, and its text is the token.
        if header is None:
            _refuse("malformed")
        if header.get("alg") != ALGORITHM:
            _refuse("algorithm")
        key_id = header.get("kid")
        if not isinstance(key_id, str) or "crit" in header:  # extensions that must be understood (RFC 7515, 4.1.11)
            _refuse("malformed")
        return key_id, claims

    @sensitive_variables()
    def _is_signed(self, token: str, certificates: Mapping[str, str]) -> bool:
        from google.auth import jwt

        try:
            # Checks the times and the audience once more: google-auth has the last word.
            jwt.decode(  # type: ignore[no-untyped-call]
                token, certs=certificates, audience=sorted(self.audiences), clock_skew_in_seconds=self.clock_skew
            )
        except (ValueError, TypeError):
            return False
        return True

    @sensitive_variables()
    def _check(self, claims: Mapping[str, Any]) -> None:
        if claims.get("iss") not in ISSUERS:
            _refuse("issuer")
        audience = claims.get("aud")
        if not isinstance(audience, str) or audience not in self.audiences:
            _refuse("audience")
        now = time.time()
        begin, end = _time(claims, "iat"), _time(claims, "exp")
        if "nbf" in claims:
            begin = max(begin, _time(claims, "nbf"))
        if now > end + self.clock_skew:
            _refuse("expired")
        if now < begin - self.clock_skew:
            _refuse("not_yet_valid")
        email = claims.get("email")
        if not isinstance(email, str) or claims.get("email_verified") is not True:
            _refuse("email")


def _several(value: str | Collection[str], name: str, meaning: str) -> frozenset[str]:
    found = frozenset([value] if isinstance(value, str) else value or ())
    if not found or not all(isinstance(text, str) and text.strip() for text in found):
        raise ImproperlyConfigured(f"A verifier of identity tokens needs {name}: {meaning}. It was given {value!r}.")
    return found


def _time(claims: Mapping[str, Any], name: str) -> float:
    value = claims.get(name)
    # Compared, since JSON of Python's may hold NaN, and integers past every float.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LATEST:
        _refuse("malformed")
    return value


def _refuse(reason: str) -> NoReturn:
    logger.info("a token was refused: %s", REASONS[reason])
    raise TokenRefused(REASONS[reason], reason=reason)
