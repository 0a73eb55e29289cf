"""Which identity tokens prove who is asking: tokens of the test's own issuer, right and wrong in every way."""

from __future__ import annotations

import io
import json
import logging
import sys
import time

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings
from django.views.debug import ExceptionReporter

from django_jobkit.exceptions import AccountRefused, KeysUnavailable, TokenRefused
from django_jobkit.oidc import LONGEST_TOKEN, REASONS, Identity, IdentityTokenVerifier
from django_jobkit.signing_keys import GOOGLE_CERTS_URL, SigningKeys
from tests.issuer import ACCOUNT, AUDIENCE, Issuer, base64url, claims, key_pair, segment, signed, with_hs256

HEADER = {"alg": "RS256", "kid": "key-1", "typ": "JWT"}


@pytest.fixture
def verifier(issuer) -> IdentityTokenVerifier:
    return IdentityTokenVerifier(audience=AUDIENCE, accounts=ACCOUNT, keys=SigningKeys(issuer.url))


def refused(verifier, token: str) -> str:
    with pytest.raises(TokenRefused) as caught:
        verifier.verify(token)
    assert str(caught.value) == REASONS[caught.value.reason]
    return caught.value.reason


def sign(payload, header=HEADER) -> str:
    return signed(header, payload, key_pair(1)[0])


class TestWhoIsLetIn:
    def test_a_token_of_an_allowed_account_says_who_it_is(self, issuer, verifier):
        assert verifier.verify(issuer.token()) == Identity(ACCOUNT, "113774264463038321964", AUDIENCE)

    def test_one_of_several_accounts_and_audiences_will_do(self, issuer):
        verifier = IdentityTokenVerifier(
            audience=["https://old.example.com", AUDIENCE],
            accounts={"other@p.iam.gserviceaccount.com", ACCOUNT},
            keys=SigningKeys(issuer.url),
        )
        assert verifier.verify(issuer.token()).email == ACCOUNT
        assert verifier.verify(issuer.token(aud="https://old.example.com")).audience == "https://old.example.com"

    def test_the_issuers_short_name_will_do(self, issuer, verifier):
        assert verifier.verify(issuer.token(iss="accounts.google.com"))

    def test_clocks_may_differ_by_seconds(self, issuer, verifier):
        now = int(time.time())
        assert verifier.verify(issuer.token(iat=now + 5))
        assert verifier.verify(issuer.token(iat=now - 3600, exp=now - 5))
        assert verifier.verify(issuer.token(nbf=now + 5))

    @pytest.mark.parametrize(
        "email",
        [
            "somebody@example.com",
            "REPORTER@some-project.iam.gserviceaccount.com",
            "reporter@some-project.iam.gserviceaccount.com.evil.example",
            " " + ACCOUNT,
            ACCOUNT + "\0",
            "",
            "*",
        ],
    )
    def test_another_account_is_known_and_not_let_in(self, issuer, verifier, email):
        with pytest.raises(AccountRefused):
            verifier.verify(issuer.token(email=email))


NOW = int(time.time())
DAY = 86_400


class TestClaims:
    @pytest.mark.parametrize(
        ("changes", "reason"),
        [
            ({"exp": NOW - 60, "iat": NOW - 3660}, "expired"),
            ({"exp": 0, "iat": 0}, "expired"),
            ({"iat": NOW + DAY, "exp": NOW + 2 * DAY}, "not_yet_valid"),
            ({"nbf": NOW + DAY, "exp": NOW + 2 * DAY}, "not_yet_valid"),
            ({"aud": "https://elsewhere.example.com/"}, "audience"),
            ({"aud": AUDIENCE.rstrip("/")}, "audience"),
            ({"aud": AUDIENCE.upper()}, "audience"),
            ({"aud": [AUDIENCE]}, "audience"),
            ({"aud": {AUDIENCE: 1}}, "audience"),
            ({"aud": ""}, "audience"),
            ({"aud": None}, "audience"),
            ({"iss": "https://accounts.google.com/"}, "issuer"),
            ({"iss": "http://accounts.google.com"}, "issuer"),
            ({"iss": "https://accounts.google.com.evil.example"}, "issuer"),
            ({"iss": "https://securetoken.google.com/project"}, "issuer"),
            ({"iss": ["https://accounts.google.com"]}, "issuer"),
            ({"iss": None}, "issuer"),
            ({"email_verified": False}, "email"),
            ({"email_verified": None}, "email"),
            ({"email_verified": "true"}, "email"),
            ({"email_verified": 1}, "email"),
            ({"email": None}, "email"),
            ({"email": [ACCOUNT]}, "email"),
            ({"exp": None}, "malformed"),
            ({"iat": None}, "malformed"),
            ({"exp": str(NOW + DAY)}, "malformed"),
            ({"exp": True}, "malformed"),
            ({"exp": float("nan")}, "malformed"),
            ({"exp": float("inf")}, "malformed"),
            ({"exp": 10**400}, "malformed"),
            ({"iat": -1}, "malformed"),
            ({"iat": "0"}, "malformed"),
            ({"nbf": "0"}, "malformed"),
            ({"nbf": []}, "malformed"),
        ],
        ids=str,
    )
    def test_a_signed_token_that_says_something_else_is_refused(self, issuer, verifier, changes, reason):
        assert refused(verifier, issuer.token(**changes)) == reason

    @pytest.mark.parametrize("payload", [[], "x", 7, None, [claims()]])
    def test_claims_are_an_object(self, verifier, payload):
        assert refused(verifier, sign(payload)) == "malformed"

    def test_a_hopeless_token_costs_no_fetch_of_keys(self, issuer, verifier):
        for changes in ({"exp": NOW - 60, "iat": NOW - 3660}, {"aud": "other"}, {"iss": "other"}):
            refused(verifier, issuer.token(**changes))
        assert issuer.asked == 0


class TestSignature:
    def test_an_unsigned_token_is_refused(self, verifier):
        for alg in ("none", "None", "NONE", "nOnE"):
            unsigned = f"{segment({'alg': alg, 'typ': 'JWT'})}.{segment(claims())}."
            assert refused(verifier, unsigned) == "malformed"
            assert refused(verifier, unsigned + "AAAA") == "algorithm"
            assert refused(verifier, sign(claims(), {**HEADER, "alg": alg})) == "algorithm"

    def test_a_mac_with_the_public_key_as_its_secret_is_refused(self, issuer, verifier):
        from cryptography.hazmat.primitives import serialization

        key, certificate = key_pair(1)
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        for secret in (certificate.encode(), public):
            assert refused(verifier, with_hs256({**HEADER, "alg": "HS256"}, claims(), secret)) == "algorithm"
            assert refused(verifier, with_hs256(HEADER, claims(), secret)) == "signature"

    @pytest.mark.parametrize("alg", ["RS384", "RS512", "PS256", "ES256", "EdDSA", "rs256", "", None, 0, ["RS256"], {}])
    def test_no_other_algorithm_will_do(self, verifier, alg):
        assert refused(verifier, sign(claims(), {**HEADER, "alg": alg})) == "algorithm"

    def test_a_key_of_another_kind_will_not_do(self, issuer, verifier):
        issuer.answer = json.dumps({"key-1": key_pair(9, "ec")[1]}).encode()
        assert refused(verifier, issuer.token()) == "signature"

    def test_another_key_under_a_known_id_is_refused(self, verifier):
        assert refused(verifier, signed(HEADER, claims(), key_pair(2)[0])) == "signature"

    @pytest.mark.parametrize("part", [0, 1, 2])
    def test_what_was_changed_after_signing_is_refused(self, issuer, verifier, part):
        own, other = issuer.token().split("."), issuer.token(sub="7", email="evil@example.com").split(".")
        own[0], other[0] = segment(HEADER), segment({**HEADER, "x": 1})
        mixed = [*own[:part], other[part], *own[part + 1 :]]
        assert refused(verifier, ".".join(mixed)) == "signature"

    @pytest.mark.parametrize("key_id", [None, "", 1, ["key-1"], {}])
    def test_the_key_has_to_be_named(self, verifier, key_id):
        header = {"alg": "RS256", "kid": key_id}
        assert refused(verifier, sign(claims(), header)) in ("malformed", "unknown_key")

    def test_a_key_that_the_token_brings_along_is_not_used(self, issuer, verifier):
        """Nor is it fetched from where the token says."""
        for more in ({"jwk": {"kty": "RSA"}}, {"jku": issuer.url}, {"x5u": issuer.url}, {"x5c": [key_pair(2)[1]]}):
            assert refused(verifier, signed({**HEADER, **more}, claims(), key_pair(2)[0])) == "signature"
        assert issuer.asked == 1

    def test_an_extension_that_has_to_be_understood_is_not(self, verifier):
        assert refused(verifier, sign(claims(), {**HEADER, "crit": ["exp"]})) == "malformed"


class TestRotation:
    def test_a_token_with_a_new_key_is_verified_when_its_time_has_come(self, issuer):
        now = [0.0]
        verifier = IdentityTokenVerifier(
            audience=AUDIENCE, accounts=ACCOUNT, keys=SigningKeys(issuer.url, clock=lambda: now[0])
        )
        verifier.verify(issuer.token())
        issuer.keys["key-2"] = 2
        assert refused(verifier, issuer.token("key-2")) == "unknown_key"
        now[0] += 60
        assert verifier.verify(issuer.token("key-2")).email == ACCOUNT
        del issuer.keys["key-1"]
        now[0] += 20_000
        issuer.keys["key-1"] = 1
        old = issuer.token("key-1")
        del issuer.keys["key-1"]
        assert refused(verifier, old) == "unknown_key"

    def test_without_the_keys_nothing_is_refused(self, issuer, verifier):
        issuer.go_down()
        with pytest.raises(KeysUnavailable):
            verifier.verify(issuer.token())

    def test_they_are_googles_where_nothing_else_is_said(self, issuer):
        assert IdentityTokenVerifier(audience=AUDIENCE, accounts=ACCOUNT).keys.url == GOOGLE_CERTS_URL


GARBAGE = {
    "empty": "",
    "a word": "token",
    "dots": "..",
    "more dots": ".....",
    "two parts": "e30.e30",
    "four parts": "e30.e30.e30.e30",
    "white space": " e30.e30.e30",
    "a line break": "e30.e30.e30\n",
    "NUL": "e30.e30.e30\0",
    "not ASCII": "e30.e30.é",
    "digits that are none": "e３0.e30.e30",
    "a lone surrogate": "e30.e30.\ud800",
    "padding": "e30=.e30=.e30=",
    "base64, not base64url": "e30.e3+/.e30",
    "a length that base64 never has": "e30.e30.e",
    "no JSON": f"{base64url(b'x')}.{base64url(b'x')}.AAAA",
    "not UTF-8": f"{base64url(bytes([255]))}.e30.AAAA",
    "empty objects": "e30.e30.AAAA",
    "no object": f"{segment([])}.e30.AAAA",
    "deep": f"{base64url(b'[' * 4000)}.e30.AAAA",
    "deep objects": base64url(b'{"a":' * 900) + ".e30.AAAA",
    "a number past all bounds": base64url(b'{"alg":' + b"9" * 5000 + b"}") + ".e30.AAAA",
    "huge": "A" * 10_000_000,
    "huge, of three parts": ".".join(["A" * 4_000_000] * 3),
    "just too long": ".".join(["A" * 2730, "A" * 2730, "A" * (LONGEST_TOKEN - 5460 - 1)]),
}


@pytest.mark.parametrize("token", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_refused_at_once(issuer, verifier, token):
    assert refused(verifier, token) in ("malformed", "algorithm")
    assert issuer.asked == 0


def test_a_token_that_is_too_long_is_not_looked_at_however_well_it_is_signed(issuer, verifier):
    assert verifier.verify(issuer.token(extra="x" * 4000))
    assert refused(verifier, issuer.token(extra="x" * 6000)) == "malformed"


class TestConfiguration:
    @pytest.mark.parametrize("missing", [None, "", "  ", [], (), set(), [""], ["x", " "], [None], [7]], ids=repr)
    def test_audience_and_accounts_have_to_be_there(self, issuer, missing):
        with pytest.raises(ImproperlyConfigured, match="needs audience"):
            IdentityTokenVerifier(audience=missing, accounts=ACCOUNT)
        with pytest.raises(ImproperlyConfigured, match="needs accounts"):
            IdentityTokenVerifier(audience=AUDIENCE, accounts=missing)

    def test_they_cannot_be_left_out(self):
        for options in ({}, {"audience": AUDIENCE}, {"accounts": ACCOUNT}):
            with pytest.raises(TypeError):
                IdentityTokenVerifier(**options)

    @pytest.mark.parametrize(
        "account", ["*", "*@example.com", "reporter", "113774264463038321964", "a@b c", "@", "a@b@c"]
    )
    def test_accounts_are_addresses_not_patterns(self, issuer, account):
        with pytest.raises(ImproperlyConfigured, match="no e-mail address"):
            IdentityTokenVerifier(audience=AUDIENCE, accounts=[ACCOUNT, account])

    def test_without_google_auth_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "google.auth.jwt", None)
        with pytest.raises(ImproperlyConfigured, match=r'pip install "django-jobkit\[oidc\]"'):
            IdentityTokenVerifier(audience=AUDIENCE, accounts=ACCOUNT)


class TestSecrecy:
    """A token that is still valid opens the door to whoever reads it."""

    @pytest.fixture
    def tokens(self, issuer: Issuer) -> list[str]:
        return [
            issuer.token(),
            issuer.token(aud="other"),
            issuer.token(email="other@example.com"),
            issuer.token() + ".x",
            issuer.token()[:-2],
            "secret-garbage-token",
            f"{segment(HEADER)}.{base64url(b'secret-payload-of-no-json')}.AAAA",
            signed({**HEADER, "kid": "other"}, claims(), key_pair(1)[0]),
        ]

    def test_it_is_in_no_log_and_in_no_error(self, issuer, verifier, tokens, caplog):
        caplog.set_level(logging.DEBUG)
        texts = []
        for outage in (False, True):
            if outage:
                issuer.go_down()
                verifier.keys = SigningKeys(issuer.url)
            for token in tokens:
                try:
                    verifier.verify(token)
                except (TokenRefused, AccountRefused, KeysUnavailable) as error:
                    texts.append(self.everything_about(error))
        written = "\n".join([*texts, caplog.text])
        assert "expired" not in written
        for token in tokens:
            for part in (token, *(part for part in token.split(".") if len(part) > 10)):
                assert part not in written
        assert "secret-payload" not in written
        assert "a token was refused: The token is meant for another audience." in caplog.text

    def everything_about(self, error: BaseException) -> str:
        """Its text, and those of all that it was raised from or after."""
        texts = []
        chained: BaseException | None = error
        while chained is not None:
            texts.append(repr(chained))
            chained = chained.__cause__ or chained.__context__
        return "\n".join(texts)

    @override_settings(DEBUG=False)
    def test_it_is_not_in_the_report_of_an_error_nobody_thought_of(self, issuer, verifier, monkeypatch, rf):
        from google.auth import jwt

        def broken(*args, **kwargs):
            raise AssertionError("a bug")

        monkeypatch.setattr(jwt, "_verify_iat_and_exp", broken)
        token = issuer.token()
        request = rf.get("/", headers={"Authorization": f"Bearer {token}"})
        with pytest.raises(AssertionError, match="a bug") as caught:
            verifier.verify(token)
        reporter = ExceptionReporter(request, caught.type, caught.value, caught.tb.tb_next)
        report = io.StringIO()
        report.write(reporter.get_traceback_text() + reporter.get_traceback_html())
        assert "a bug" in report.getvalue()
        for part in (token, *token.split(".")):
            assert part not in report.getvalue()
