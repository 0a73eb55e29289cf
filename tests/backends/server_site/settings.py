"""A site for real server processes. What differs between tests comes from the environment."""

import json
import os
import sys
from pathlib import Path

DATA = Path(os.environ["JOBKIT_TEST_DATA"])
sys.path.append(str(DATA / "code"))  # for what a test changes while the site runs

SECRET_KEY = "only for tests"
DEBUG = bool(os.environ.get("JOBKIT_TEST_DEBUG"))  # runserver serves without static files otherwise, but not reloads
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "tests.backends.server_site.urls"
WSGI_APPLICATION = "tests.backends.server_site.wsgi.application"
INSTALLED_APPS = ["django_jobkit"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
STATIC_URL = "/static/"
DATABASES = {}
USE_TZ = True
STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": DATA / "media"},
    },
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
JOBKIT = {"default": {"CACHE": None, "ACCESS": "tests.backends.server_site.urls.Anybody"}}
TASKS = {
    "default": {
        "BACKEND": "django_jobkit.backends.InProcessBackend",
        "OPTIONS": json.loads(os.environ.get("JOBKIT_TEST_OPTIONS", "{}")),
    }
}
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
