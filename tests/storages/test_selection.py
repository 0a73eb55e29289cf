from __future__ import annotations

import subprocess
import sys

import pytest
from django.core.files.storage import FileSystemStorage, InMemoryStorage, default_storage, storages

from django_jobkit.storages import adapt
from django_jobkit.storages.filesystem import FileSystemJobStorage
from django_jobkit.storages.generic import GenericJobStorage
from django_jobkit.storages.memory import MemoryJobStorage
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
