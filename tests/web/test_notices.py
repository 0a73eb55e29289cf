from __future__ import annotations

from django.contrib import messages
from django.test import RequestFactory

from django_jobkit.web.notices import tell


def test_without_djangos_messages_nobody_is_told():
    assert tell(RequestFactory().get("/"), messages.ERROR, "text") is False


def test_a_message_is_left_for_the_next_page(rf):
    from django.contrib.messages.storage.cookie import CookieStorage

    request = rf.get("/")
    request._messages = CookieStorage(request)
    assert tell(request, messages.ERROR, "text") is True
    assert [str(message) for message in request._messages] == ["text"]
