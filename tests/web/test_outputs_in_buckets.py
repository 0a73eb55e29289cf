"""Outputs in the buckets of emulators, as django-storages' own classes reach them."""

from __future__ import annotations

import re
import urllib.request
from html import unescape

import pytest
from django.urls import reverse

from tests.storages.providers import amazon, google
from tests.storages.servers import gcs_bucket, gcs_url, s3_bucket, s3_url, send  # noqa: F401
from tests.web.conftest import JOB_ID, put
from tests.web.made_outputs import body, url

pytestmark = [pytest.mark.component, pytest.mark.slow]

NAME = "charts/by region%.txt"


def in_bucket(kit, adapter) -> None:
    """Have the job's files there, in a job with an output that is there and one that isn't."""
    kit.django_storage = adapter.storage
    adapter.write(kit.output_name(JOB_ID, NAME), b"0123456789")
    put(kit, outputs=[NAME, "gone.txt"])


@pytest.fixture(params=["s3", "gcs"])
def unsigned(request, kit):
    """Of a storage that signs nothing."""
    if request.param == "s3":
        endpoint, bucket = request.getfixturevalue("s3_url"), request.getfixturevalue("s3_bucket")
        in_bucket(kit, amazon(endpoint, bucket, querystring_auth=False))
    else:
        endpoint, bucket = request.getfixturevalue("gcs_url"), request.getfixturevalue("gcs_bucket")
        in_bucket(kit, google(endpoint, bucket, querystring_auth=False))


@pytest.fixture
def signed(s3_url, s3_bucket, kit):  # noqa: F811
    in_bucket(kit, amazon(s3_url, s3_bucket))


def test_the_page_leads_to_the_bucket_where_the_storage_signs(signed, viewer):
    html = viewer.get(reverse("jobkit:detail", args=[JOB_ID])).content.decode()
    link = unescape(re.search(r'href="([^"]+Signature=[^"]+)"', html)[1])
    assert send(urllib.request.Request(link)) == b"0123456789"


def test_so_does_the_url_of_the_kit(signed, viewer):
    response = viewer.get(url(NAME))
    assert response.status_code == 302
    assert send(urllib.request.Request(response["Location"])) == b"0123456789"


def test_otherwise_the_kit_hands_them_out(unsigned, viewer):
    link = url(NAME)
    assert f'href="{link}"' in viewer.get(reverse("jobkit:detail", args=[JOB_ID])).content.decode()
    response = viewer.get(link)
    assert response["Content-Length"] == "10"
    assert body(response) == b"0123456789"
    assert body(viewer.get(link, headers={"Range": "bytes=4-5"})) == b"45"
    assert viewer.head(link)["Content-Length"] == "10"


def test_one_that_is_gone_is_404(unsigned, viewer):
    response = viewer.get(url("gone.txt"))
    assert response.status_code == 404
    assert "This output is gone" in response.content.decode()
