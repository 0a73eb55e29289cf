import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def environment(data_dir):
    """That of somebody who has installed the package and set nothing."""
    # As `pip install -e .` and manage.py, each its own, have it.
    paths = (str(REPOSITORY), str(REPOSITORY / "example_project"), os.environ.get("PYTHONPATH"))
    ours = {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "JOBKIT_EXAMPLE_DATA": str(data_dir),
        "JOBKIT_EXAMPLE_RESAMPLES": "20",
    }
    return {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"} | ours


@pytest.mark.slow
def test_the_tests_of_the_site_pass_under_its_own_settings(tmp_path):
    arguments = ["-q", "--ds=demosite.settings", "-p", "no:cacheprovider", "tests/example/site"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        cwd=REPOSITORY,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    "arguments", [["check", "--fail-level", "WARNING"], ["makemigrations", "--check", "--dry-run"]]
)
def test_the_site_has_nothing_for_django_to_find_fault_with(tmp_path, arguments):
    run = subprocess.run(
        [sys.executable, "-W", "error", REPOSITORY / "example_project" / "manage.py", *arguments],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
