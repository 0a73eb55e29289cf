from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.parametrize("script", ["queue.py", "jobs.py"])
def test_the_benchmarks_run_though_one_bears_the_name_of_a_standard_module(script):
    command = [sys.executable, f"benchmarks/{script}", "--quick"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stderr) == (0, "")
    if script == "queue.py":
        assert "ratio of the rates" in process.stdout
        assert "bytes per job" in process.stdout
