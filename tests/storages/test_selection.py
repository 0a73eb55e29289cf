from __future__ import annotations

import subprocess
import sys

import pytest
from django.core.files.storage import FileSystemStorage, InMemoryStorage, default_storage, storages

from django_jobkit.storages import adapt
from django_jobkit.storages.filesystem import FileSystemJobStorage
from django_jobkit.storages.generic import GenericJobStorage
from django_jobkit.storages.memory import MemoryJobStorage
from tests.components import require
from tests.storages.test_generic import DictStorage


@pytest.mark.parametrize(
    ("make", "adapter"),
    [
        (lambda: InMemoryStorage(), MemoryJobStorage),
        (lambda: FileSystemStorage("/nowhere"), FileSystemJobStorage),
        (lambda: DictStorage(), GenericJobStorage),
        (lambda: type("Custom", (FileSystemStorage,), {})("/nowhere"), FileSystemJobStorage),
        (lambda: type("Encrypting", (FileSystemStorage,), {"_save": lambda *a: ""})("/nowhere"), GenericJobStorage),
    ],
    ids=["memory", "local", "other", "subclass", "subclass that stores in its own way"],
)
def test_each_kind_of_storage_gets_its_adapter(make, adapter):
    django_storage = make()
    adapted = adapt(django_storage)
    assert type(adapted) is adapter
    assert adapted.storage is django_storage


def test_the_lazy_default_storage_is_unwrapped():
    adapted = adapt(default_storage)
    assert type(adapted) is MemoryJobStorage
    assert adapted.storage is storages["default"]


def test_what_keeps_the_contract_already_is_returned_as_it_is():
    adapted = MemoryJobStorage()
    assert adapt(adapted) is adapted


def test_importing_loads_no_sdk_and_reads_no_setting():
    code = (
        "import sys, django_jobkit.storages\n"
        "from django.core.files.storage import FileSystemStorage\n"
        "django_jobkit.storages.adapt(FileSystemStorage('/nowhere'))\n"
        "from django.conf import settings\n"
        "print(settings.configured, [n for n in sys.modules if n.split('.')[0] in ('google', 'boto3', 'storages')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env={})
    assert done.stdout.strip() == "False []"


def run_without(blocked: str, code: str) -> str:
    """What the code prints where the named packages can't be imported."""
    block = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if any(name == b or name.startswith(b + '.') for b in {blocked.split()!r}):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "from django.conf import settings\n"
        "settings.configure(STORAGES={\n"
        "    'google': {'BACKEND': 'storages.backends.gcloud.GoogleCloudStorage', 'OPTIONS': {'bucket_name': 'b'}},\n"
        "    'amazon': {'BACKEND': 'storages.backends.s3.S3Storage', 'OPTIONS': {'bucket_name': 'b'}},\n"
        "    'typo': {'BACKEND': 'storages.backends.gcloud.GoogleStorage'},\n"
        "    'option': {'BACKEND': 'django.core.files.storage.InMemoryStorage', 'OPTIONS': {'locaton': '/'}},\n"
        "})\n"
        "from django_jobkit.exceptions import StorageMisconfigured\n"
        "from django_jobkit.storages import from_settings\n"
    )
    done = subprocess.run([sys.executable, "-c", block + code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


ASK = (
    "for alias in ('google', 'amazon'):\n"
    "    try:\n"
    "        print(alias, type(from_settings(alias)).__name__)\n"
    "    except StorageMisconfigured as error:\n"
    "        print(alias, error)\n"
)


@pytest.mark.parametrize("blocked", ["storages google boto3 botocore", "google.cloud boto3 botocore"])
def test_asking_for_a_storage_whose_packages_are_missing_names_the_extra(blocked):
    google, amazon = run_without(blocked, ASK).splitlines()
    assert 'pip install "django-jobkit[gcs]"' in google
    assert 'pip install "django-jobkit[s3]"' in amazon


@pytest.mark.component
def test_storages_of_these_services_get_their_adapters_and_load_only_their_packages():
    require("storages.backends.gcloud", "pip install 'django-storages[google]'")
    require("storages.backends.s3", "pip install 'django-storages[s3]'")
    made = "a = from_settings('google', timeout=3, concurrency=4)\n"
    printed = run_without("boto3", made + "print(type(a).__name__, a.timeout, a.concurrency, a.alias)")
    assert printed == "GCSJobStorage 3 4 google\n"
    assert run_without("google.cloud", "print(type(from_settings('amazon')).__name__)") == "S3JobStorage\n"


def test_every_other_reason_is_told_as_it_is():
    code = (
        "for alias in ('typo', 'nothing', 'option'):\n"
        "    try:\n"
        "        from_settings(alias)\n"
        "    except StorageMisconfigured as error:\n"
        "        print(error)\n"
    )
    typo, nothing, option = run_without("nothing", code).splitlines()
    assert "GoogleStorage" in typo
    assert "'nothing'" in nothing
    assert "locaton" in option
    assert "pip install" not in typo + nothing + option
