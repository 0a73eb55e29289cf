"""A site for one's own machine: it needs no environment, and keeps all it makes below ``data/``.

For the place of everything in a real site, see Django's deployment checklist; what is meant for this one only says so.
"""

import os
from pathlib import Path

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(os.environ.get("JOBKIT_EXAMPLE_DATA") or BASE_DIR / "data")
DATA_DIR.mkdir(parents=True, exist_ok=True)  # SQLite makes its file, but not the directory

# --- only for one's own machine -------------------------------------------------------------------------------------

SECRET_KEY = "django-insecure-for-the-example-on-127.0.0.1-only"
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "[::1]"]
DEBUG = False  # so that errors look as they would on a real site
# Browsers send one port's cookies to all ports of 127.0.0.1, so other projects' cookies get names of their own.
SESSION_COOKIE_NAME = "filereport_session"
CSRF_COOKIE_NAME = "filereport_csrf"

# --- the kit ---------------------------------------------------------------------------------------------------------

STORAGES = {
    "default": {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": DATA_DIR / "media"},  # served by the kit, to those who may see the job
    },
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
JOBKIT = {
    "default": {
        "PREFIX": "jobs",
        "LIST_TTL": 5,  # seconds; jobs of a `manage.py demo` in another terminal show up that soon
        "RETRY": "django_jobkit.backends.retry",  # makes a report again, from the file in the job's directory
    },
}
# The site's own processes run its jobs. One that stops takes no more of them, then ends those it has; what it can't end
# in time, and what a killed one leaves, is run by the next. Keep STOP_TIMEOUT below what a server's manager allows.
TASKS = {
    "default": {
        "BACKEND": "django_jobkit.backends.InProcessBackend",
        "OPTIONS": {"WORKERS": 3, "BUFFER": 50, "STOP_TIMEOUT": 10},
    },
}
# The kit warns of a cache that each process has for itself. This site is one process, with its jobs on threads of it.
SILENCED_SYSTEM_CHECKS = ["jobkit.W002"]

# --- the reports -----------------------------------------------------------------------------------------------------

REPORT_MAX_BYTES = 5 * 1024 * 1024
# How often confidence intervals draw from the data: what makes a report take a second or two.
REPORT_RESAMPLES = int(os.environ.get("JOBKIT_EXAMPLE_RESAMPLES") or 10_000)

# --- an ordinary Django site -----------------------------------------------------------------------------------------

INSTALLED_APPS = [
    "filereport",  # before the apps whose templates it overrides
    "django_jobkit",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "demosite.urls"
WSGI_APPLICATION = "demosite.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": DATA_DIR / "db.sqlite3"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGIN_URL = "admin:login"
STATIC_URL = "/static/"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"ours": {"()": "filereport.logs.OurFaultsOnly"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "filters": ["ours"]}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {"django.tasks": {"level": "WARNING"}},  # each job's start and end stand on its page
}
