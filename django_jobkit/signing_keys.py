"""The public keys that identity tokens are signed with: fetched when they are needed, kept, and fetched anew when
they rotate.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .exceptions import KeysUnavailable

if TYPE_CHECKING:
    from google.auth.transport import Request

GOOGLE_CERTS_URL: Final = "https://www.googleapis.com/oauth2/v1/certs"
"""Google's certificates, one per key. (Its other URL has the same keys as JWKs, which google-auth alone can't read.)"""

DEFAULT_LIFETIME: Final = 3600.0
_SHORTEST, _LONGEST = 60.0, 86_400.0

_MAX_AGE = re.compile(r"\bmax-age=([0-9]{1,9})\b")

logger = logging.getLogger("django_jobkit.oidc")


@dataclass(frozen=True, slots=True)
class _Held:
    keys: Mapping[str, str]
    fetched_at: float
    expires_at: float


class SigningKeys:
    """Certificates by key ID, from a URL that answers ``{"key ID": "PEM certificate", …}``.

    They are kept as long as the answer's ``max-age`` says, a minute at least and a day at most, an hour if it doesn't
    say. An ID that isn't among them has them fetched once more, but not sooner than ``refetch_after`` seconds after
    the last time: anybody can make up IDs. After a failure, nobody asks for ``retry_after`` seconds, so that an outage
    doesn't have every request wait for ``timeout`` (seconds).

    ``request`` is a transport of google-auth, by default over ``requests``. Safe to share between threads: one
    fetches, and only those who need a new key wait for it.
    """

    def __init__(
        self,
        url: str = GOOGLE_CERTS_URL,
        *,
        request: Request | None = None,
        timeout: float = 5.0,
        refetch_after: float = 60.0,
        retry_after: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url
        self.timeout = timeout
        self.refetch_after = refetch_after
        self.retry_after = retry_after
        self._request = request
        self._clock = clock
        self._held: _Held | None = None
        self._failed_at: float | None = None
        self._lock = threading.Lock()

    def get(self, key_id: str) -> str | None:
        """The certificate with this key, None if there is none. Raises `KeysUnavailable` if that can't be told."""
        held = self._held
        if held is not None and self._clock() < held.expires_at and key_id in held.keys:
            return held.keys[key_id]
        with self._lock:
            held, now = self._held, self._clock()
            if (
                held is None
                or now >= held.expires_at
                or (key_id not in held.keys and now >= held.fetched_at + self.refetch_after)
            ):
                held = self._held = self._fetch(now)
        return held.keys.get(key_id)

    def _fetch(self, now: float) -> _Held:
        if self._failed_at is not None and now < self._failed_at + self.retry_after:
            raise KeysUnavailable(f"The keys at {self.url} could not be fetched a moment ago.")
        try:
            keys, lifetime = self._ask()
        except KeysUnavailable:
            self._failed_at = self._clock()
            raise
        now = self._clock()
        logger.info("%d keys fetched from %s, to be kept for %d seconds", len(keys), self.url, lifetime)
        return _Held(keys, now, now + lifetime)

    def _ask(self) -> tuple[dict[str, str], float]:
        from google.auth.exceptions import TransportError

        if self._request is None:
            self._request = _default_transport()
        try:
            response = self._request(self.url, method="GET", timeout=self.timeout)
        except TransportError as error:
            raise KeysUnavailable(f"The keys at {self.url} can't be fetched: {error}") from error
        if response.status != 200:
            raise KeysUnavailable(f"The keys at {self.url} can't be fetched: it answered {response.status}.")
        try:
            keys = _read(response.data)
        except (ValueError, RecursionError) as error:
            raise KeysUnavailable(f"What {self.url} answered are no certificates by key ID: {error}") from error
        return keys, _lifetime({name.lower(): value for name, value in response.headers.items()})


def _default_transport() -> Request:
    from google.auth.transport.requests import Request as OverRequests

    return OverRequests()


def _read(data: bytes) -> dict[str, str]:
    from google.auth.crypt import RSAVerifier

    document: Any = json.loads(data)
    if not isinstance(document, dict) or not document:
        raise ValueError("not an object with members")
    for key_id, certificate in document.items():
        if not isinstance(certificate, str):
            raise ValueError(f"{key_id!a} is no text")
        # A ValueError now, instead of an invalid token later.
        RSAVerifier.from_string(certificate)  # type: ignore[no-untyped-call]
    return document


def _lifetime(headers: Mapping[str, str]) -> float:
    """For how many seconds the answer is fresh (RFC 9111, 4.2)."""
    match = _MAX_AGE.search(headers.get("cache-control", ""))
    if match is None:
        return DEFAULT_LIFETIME
    age = headers.get("age", "")
    spent = int(age) if age.isascii() and age.isdigit() and len(age) < 10 else 0
    return min(max(float(match[1]) - spent, _SHORTEST), _LONGEST)
