"""The benchmarks run; how fast, they tell whoever starts them by hand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if "py --quick" in path.read_text("utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_benchmark_runs_on_small_inputs_and_prints_figures(script):
    done = subprocess.run(
        [sys.executable, str(script), "--quick"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},  # not installed, maybe
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d\.\d", done.stdout), done.stdout


def test_every_benchmark_is_found():
    assert {"jobs.py", "queue.py", "storage.py"} <= {path.name for path in SCRIPTS}
