pytest_plugins = ["django_jobkit.testing.plugin", "tests.redis_server", "tests.issuer"]
