"""``manage.py demo``: see the kit at work with one command, on nothing but this machine."""

from __future__ import annotations

import errno
import signal
from argparse import ArgumentParser
from contextlib import suppress
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler, get_internal_wsgi_application
from django.urls import reverse
from django.utils.crypto import get_random_string

from django_jobkit import jobkits
from django_jobkit.backends import stop_queues
from django_jobkit.exceptions import JobKitError
from django_jobkit.jobs import State
from filereport import samples, worker
from filereport.job_watch import JobWatch
from filereport.terminal import ProgressBar, table

HOST: Final = "127.0.0.1"
USER: Final = "demo"
# Without letters and digits that look alike, for those who type it.
_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"


class Command(BaseCommand):
    help = (
        "Makes the database and a user, runs a dozen jobs over the files that come with the site, shows the history, "
        "and serves the site on 127.0.0.1. Needs no setting, and can be run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-serve", action="store_true", help="end after showing the history")
        parser.add_argument("--port", type=int, default=8000, help="the port to serve on (default: 8000)")

    def handle(self, *args: Any, no_serve: bool, port: int, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
        call_command("migrate", verbosity=0)
        password = make_demo_user()
        try:
            job_ids = self.run_jobs()
            self.show_history()
            self.require_expected_ends(job_ids)
            if no_serve:
                self.show_urls(port, password)
                self.stdout.write("These pages are there while `manage.py runserver` runs.")
            else:
                self.serve(port, password)
        except (JobKitError, TimeoutError) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self.stdout.write("\nStopping before all jobs are done. What can't end in time is run at the next start.")
            raise SystemExit(130) from None
        finally:
            stop_queues()

    def run_jobs(self) -> dict[str, str]:
        """Submit a job for each file and wait for their ends; their IDs, by file."""
        with JobWatch() as watch:
            job_ids = {name: worker.submit(name, samples.read(name), owner=USER) for name in samples.SAMPLES}
            bar = ProgressBar(self.stdout, len(job_ids))
            for status in watch.until_ended(job_ids.values(), bar.show):
                bar.advance(f"{status.state:9}  {status.title}")
            bar.close()
        return job_ids

    def show_history(self) -> None:
        kit = jobkits["default"]
        page = kit.history.page(1, kit.settings.per_page)
        head = ["State", "Title", "Attempts", "Seconds", "Job"]
        rows = []
        for row in page.items:
            status = row.status
            if status is None:
                rows.append([row.problem, "", "", "", row.job_id])
                continue
            spent = status.finished_at - status.started_at if status.finished_at and status.started_at else None
            seconds = f"{spent.total_seconds():.1f}" if spent is not None else ""
            rows.append([str(status.state), status.title, str(status.attempts), seconds, row.job_id])
        meta = page.meta
        self.stdout.write(f"\nJobs {meta.start_index} to {meta.end_index} of {meta.total}, newest first\n\n")
        self.stdout.write(table([head, *rows], right={2, 3}))

    def require_expected_ends(self, job_ids: dict[str, str]) -> None:
        """One file has a mistake in it on purpose. Any other failure is one of ours."""
        store = jobkits["default"].store
        for name, job_id in job_ids.items():
            status = store.get(job_id)
            expected = State.FAILED if name == samples.BROKEN else State.SUCCEEDED
            if status.state != expected:
                raise CommandError(f"The job for {name} is {status.state}, not {expected}: {status.error}")
            if status.error:
                self.stdout.write(f"\n{name} failed, as it should. {status.error.partition(chr(10))[0]}")

    def serve(self, port: int, password: str) -> None:
        try:
            server = ThreadedWSGIServer((HOST, port), WSGIRequestHandler)
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            self.stdout.write(f"\nPort {port} is taken, so here is a free one.")
            server = ThreadedWSGIServer((HOST, 0), WSGIRequestHandler)
        with server:
            server.set_app(get_internal_wsgi_application())
            self.show_urls(server.server_port, password)
            self.stdout.write("Ctrl-C stops the site.")
            self.stdout.flush()
            with suppress(KeyboardInterrupt):
                server.serve_forever()
        # In this order: no more requests are taken, and then, in `handle`, the queue is stopped. A request that is
        # still being answered meanwhile gets 503 for a job that it wants to submit.
        self.stdout.write("\nStopping. Jobs that have been accepted come to their end first.")

    def show_urls(self, port: int, password: str) -> None:
        site = f"http://{HOST}:{port}"
        urls = [["New report", site + reverse("submit")], ["Jobs", site + reverse("jobkit:history")]]
        self.stdout.write(f"\n{table([*urls, ['As JSON', site + reverse('jobkit:api-list')]])}")
        self.stdout.write(f"\nLog in as {USER} with the password {password} (a new one each time this command runs).")


def make_demo_user() -> str:
    """Make the user who may see and delete jobs, if there is none, and return a new password.

    Random and told just here, since the site's secret key and all else about it are public.
    """
    password = get_random_string(12, _LETTERS)
    user, _ = get_user_model().objects.get_or_create(username=USER)
    user.is_staff = True
    user.set_password(password)
    user.save()
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="django_jobkit"))
    return password
