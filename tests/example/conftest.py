"""The example's code that needs no Django is tested like any other. What needs its settings is in ``site``, which
`test_site` runs in a process of its own: one process has one settings module."""

import os
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "example_project"
if str(EXAMPLE) not in sys.path:
    sys.path.insert(0, str(EXAMPLE))

if os.environ.get("DJANGO_SETTINGS_MODULE") != "demosite.settings":
    collect_ignore = ["site"]
