import pytest
from django.urls import reverse
from filereport.management.commands.demo import USER, make_demo_user

from django_jobkit.access import Action

pytestmark = pytest.mark.django_db


def test_the_demo_user_logs_in_with_the_password_and_may_do_all_with_jobs(client):
    password = make_demo_user()

    assert client.login(username=USER, password=password)
    assert client.get(reverse("jobkit:history")).status_code == 200
    user = client.get(reverse("jobkit:history")).context["user"]
    assert user.get_all_permissions() == {f"django_jobkit.{action}_job" for action in Action}
    assert not user.is_superuser


def test_the_password_is_new_each_time_and_the_old_one_is_void(client):
    old, new = make_demo_user(), make_demo_user()

    assert old != new
    assert not client.login(username=USER, password=old)
    assert client.login(username=USER, password=new)
