"""One line for whoever acted, on the next page that they see."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest


def tell(request: HttpRequest, level: int, text: str) -> bool:
    """Leave a message, one of Django's; False where the site has none, so that nobody will see it."""
    try:
        messages.add_message(request, level, text)
    except messages.MessageFailure:
        return False
    return True
