"""When the keys of tokens are asked for, and what happens while they can't be had."""

from __future__ import annotations

import json
import threading

import pytest

from django_jobkit.exceptions import KeysUnavailable
from django_jobkit.signing_keys import DEFAULT_LIFETIME, SigningKeys, _lifetime
from tests.issuer import key_pair


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(issuer, clock) -> SigningKeys:
    return SigningKeys(issuer.url, clock=clock)


def test_nothing_is_asked_before_a_key_is_wanted(issuer, keys):
    assert issuer.asked == 0


def test_keys_are_fetched_once_and_kept_until_they_expire(issuer, keys, clock):
    for _ in range(3):
        assert keys.get("key-1") == key_pair(1)[1]
    clock.now += 19_999
    keys.get("key-1")
    assert issuer.asked == 1
    clock.now += 1
    keys.get("key-1")
    assert issuer.asked == 2


def test_a_key_that_is_gone_from_the_answer_is_no_key_any_more(issuer, keys, clock):
    keys.get("key-1")
    issuer.keys = {"key-2": 2}
    clock.now += 20_000
    assert keys.get("key-1") is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, DEFAULT_LIFETIME),
        ({"cache-control": "no-store"}, DEFAULT_LIFETIME),
        ({"cache-control": "public, max-age=7200, must-revalidate"}, 7200),
        ({"cache-control": "public, max-age=7200", "age": "200"}, 7000),
        ({"cache-control": "max-age=7200", "age": "soon"}, 7200),
        ({"cache-control": "max-age=0"}, 60),  # or each request would ask
        ({"cache-control": "max-age=7200", "age": "999999"}, 60),
        ({"cache-control": "max-age=99999999"}, 86_400),  # a key that leaked has to go at some time
        ({"cache-control": "max-age=" + "9" * 5000}, DEFAULT_LIFETIME),
    ],
)
def test_how_long_an_answer_is_fresh(headers, seconds):
    assert _lifetime(headers) == seconds


class TestRotation:
    def test_a_new_key_is_fetched_when_a_token_comes_with_it(self, issuer, keys, clock):
        keys.get("key-1")
        issuer.keys["key-2"] = 2
        clock.now += 60
        assert keys.get("key-2") == key_pair(2)[1]
        assert issuer.asked == 2

    def test_made_up_ids_have_the_keys_fetched_once_a_minute_at_most(self, issuer, keys, clock):
        keys.get("key-1")
        for n in range(50):
            assert keys.get(f"made-up-{n}") is None
        assert issuer.asked == 1
        clock.now += 60
        for n in range(50):
            assert keys.get(f"made-up-{n}") is None
        assert issuer.asked == 2

    def test_those_with_a_known_key_do_not_wait_for_the_fetch_of_a_new_one(self, issuer, keys, clock):
        keys.get("key-1")
        issuer.keys["key-2"] = 2
        clock.now += 60
        issuer.gate.clear()
        found = []
        other = threading.Thread(target=lambda: found.append(keys.get("key-2")))
        other.start()
        assert keys.get("key-1") == key_pair(1)[1]
        assert not found
        issuer.gate.set()
        other.join(10)
        assert found == [key_pair(2)[1]]


class TestOutage:
    def test_refused(self, issuer, keys):
        issuer.go_down()
        with pytest.raises(KeysUnavailable, match="can't be fetched"):
            keys.get("key-1")

    @pytest.mark.parametrize("status", [204, 403, 404, 500, 503])
    def test_an_error_is_no_key(self, issuer, keys, status):
        issuer.status = status
        with pytest.raises(KeysUnavailable, match=f"answered {status}"):
            keys.get("key-1")

    @pytest.mark.parametrize(
        "answer",
        [
            b"",
            b"<html>",
            b"[]",
            b"{}",
            b"null",
            b"\xff\xfe",
            b"[" * 100_000,
            b'{"key-1": "no certificate"}',
            b'{"key-1": null}',
            json.dumps({"keys": [{"kty": "RSA", "kid": "key-1", "n": "AQAB", "e": "AQAB"}]}).encode(),  # JWKs
        ],
        ids=lambda answer: answer[:30],
    )
    def test_another_answer_is_no_key(self, issuer, keys, answer):
        issuer.answer = answer
        with pytest.raises(KeysUnavailable, match="no certificates by key ID"):
            keys.get("key-1")

    def test_silence_ends_with_the_timeout(self, issuer, clock):
        issuer.gate.clear()
        with pytest.raises(KeysUnavailable, match="timed out"):
            SigningKeys(issuer.url, timeout=0.2, clock=clock).get("key-1")

    def test_it_is_asked_again_after_some_seconds_not_by_every_request(self, issuer, keys, clock):
        issuer.status = 500
        for _ in range(10):
            with pytest.raises(KeysUnavailable):
                keys.get("key-1")
        assert issuer.asked == 1
        issuer.status = 200
        clock.now += 5
        assert keys.get("key-1") == key_pair(1)[1]

    def test_known_keys_do_until_they_expire(self, issuer, keys, clock):
        keys.get("key-1")
        issuer.go_down()
        clock.now += 19_999
        assert keys.get("key-1") == key_pair(1)[1]
        clock.now += 1
        with pytest.raises(KeysUnavailable):
            keys.get("key-1")

    def test_whether_a_new_key_is_one_cannot_be_told(self, issuer, keys, clock):
        keys.get("key-1")
        issuer.go_down()
        assert keys.get("key-2") is None  # they are fresh: it is not worth asking
        clock.now += 60
        with pytest.raises(KeysUnavailable):
            keys.get("key-2")
        assert keys.get("key-1") == key_pair(1)[1]


def test_many_threads_at_once_fetch_once(issuer, keys):
    issuer.gate.clear()
    found = []
    threads = [threading.Thread(target=lambda: found.append(keys.get("key-1"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    issuer.gate.set()
    for thread in threads:
        thread.join(10)
    assert found == [key_pair(1)[1]] * 8
    assert issuer.asked == 1
