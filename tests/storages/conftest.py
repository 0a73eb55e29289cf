"""Makes the fixtures of `servers` known to the tests of the storages."""

from tests.storages.servers import gcs_bucket, gcs_proxy, gcs_url, s3_bucket, s3_proxy, s3_url

__all__ = ["gcs_bucket", "gcs_proxy", "gcs_url", "s3_bucket", "s3_proxy", "s3_url"]
