"""A site whose places come from the environment, for programs that tests start."""

import os

from tests.settings import *  # noqa: F403

STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": os.environ["JOBKIT_TEST_LOCATION"]},
    },
}
CACHES = {
    "default": {
        "BACKEND": "django_redis.cache.RedisCache",
        "LOCATION": os.environ["JOBKIT_TEST_REDIS"],
        "OPTIONS": {"SOCKET_TIMEOUT": 1, "SOCKET_CONNECT_TIMEOUT": 1},
    },
}
