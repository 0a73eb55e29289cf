import pytest
from django.urls import reverse
from filereport.management.commands.demo import USER, make_demo_user

pytestmark = pytest.mark.django_db


def test_the_demo_user_logs_in_with_the_password_and_may_see_and_delete_jobs(client):
    password = make_demo_user()

    assert client.login(username=USER, password=password)
    assert client.get(reverse("jobkit:history")).status_code == 200
    user = client.get(reverse("jobkit:history")).context["user"]
    assert user.get_all_permissions() == {"django_jobkit.view_job", "django_jobkit.delete_job"}
    assert not user.is_superuser


def test_the_password_is_new_each_time_and_the_old_one_is_void(client):
    old, new = make_demo_user(), make_demo_user()

    assert old != new
    assert not client.login(username=USER, password=old)
    assert client.login(username=USER, password=new)
