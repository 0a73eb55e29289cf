#!/usr/bin/env python
"""The example site's commands: `demo`, `runserver`, and Django's own. Works from any directory."""

import os
import sys

from django.core.management import execute_from_command_line

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "demosite.settings")
    execute_from_command_line(sys.argv)
