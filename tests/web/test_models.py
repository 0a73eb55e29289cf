from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import connection

from django_jobkit.access import Action
from django_jobkit.models import Job


@pytest.mark.django_db
def test_migrating_makes_the_permissions_and_no_table():
    found = Permission.objects.filter(content_type__app_label="django_jobkit").values_list("codename", flat=True)
    assert set(found) == {f"{action}_job" for action in Action}
    assert Job._meta.db_table not in connection.introspection.table_names()


@pytest.mark.django_db
def test_the_migrations_are_up_to_date():
    call_command("makemigrations", "django_jobkit", check=True, dry_run=True, verbosity=0)


def test_a_job_is_called_by_its_id():
    assert str(Job(job_id="abc")) == "abc"
