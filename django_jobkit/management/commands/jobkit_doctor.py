from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from ... import conf
from ...doctor import examine
from ...kit import JobKit


class Command(BaseCommand):
    help = (
        "Tries whether this site's storage and cache do what django_jobkit needs; exits with 1 if something is wrong."
    )
    requires_system_checks = ()  # they are among what is printed

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--kit", metavar="ALIAS", help="examine only this alias of JOBKIT (default: all)")

    def handle(self, *, kit: str | None = None, **_: Any) -> None:
        try:
            kits = [JobKit(alias) for alias in ([kit] if kit else conf.aliases())]
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        styles = {"ok": self.style.SUCCESS, "warning": self.style.WARNING, "error": self.style.ERROR}
        wrong = 0
        for examined in kits:
            self.stdout.write(self.style.MIGRATE_HEADING(f"JOBKIT[{examined.alias!r}]"))
            for finding in examine(examined):
                wrong += finding.level == "error"
                self.stdout.write(f"  {styles[finding.level](f'{finding.level:<7}')}  {finding.what}")
                if finding.advice:
                    self.stdout.write(f"           {finding.advice}")
        if wrong:
            raise CommandError(f"{wrong} of the checks found something wrong.", returncode=1)
        self.stdout.write("Nothing is wrong.")
