"""The view by which a site lets people, and programs, submit a job."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django import forms
from django.core.exceptions import ImproperlyConfigured
from django.db.transaction import non_atomic_requests
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.csrf import csrf_exempt, requires_csrf_token

from ..access import Action
from ..exceptions import QueueFull, QueueStopped, StatusUnavailable, StorageUnavailable
from ..jobs import State
from .baseviews import JSONView, KitView, PageView
from .responses import Answer, NotAnObject, json_body, with_retry


# Non-atomic, since a job is handed to its queue when the transaction commits: after the view, which could then no
# longer answer that the queue is full. The CSRF check is made in `admit`, so that its answer is JSON where that is
# wanted; the token for the form's page is made as for any other view.
@method_decorator([csrf_exempt, requires_csrf_token, non_atomic_requests], name="dispatch")
class JobSubmitView(PageView):
    """A form, whose sender gets a job; or, without a form, a button. Subclass it, and map it as you like::

        class ReportView(JobSubmitView):
            task = make_report       # as for `JobKit.submit`
            form_class = ReportForm

    The task gets what the form's ``cleaned_data`` has, as arguments by name; `get_task_args`, `get_task_kwargs`,
    `get_status_fields` and `submit` may say otherwise. Who `Access.allows` to add jobs may use it: nobody, by
    default, but staff users with ``django_jobkit.add_job``.

    A browser is redirected to the job's page. A client that accepts or sends JSON gets 202, with the job's ID and
    URLs, and sends the form's fields as a JSON object if it likes; the CSRF token, as ever, as ``X-CSRFToken``.
    Errors: 400 for what the form refuses, 429 for a full queue, 503 for one that is stopping and for a storage that
    fails, both with ``Retry-After``. No transaction of ATOMIC_REQUESTS is around it.
    """

    action = Action.ADD
    task: Any = None
    form_class: type[forms.BaseForm] | None = None
    template_name = "django_jobkit/submit.html"
    """Gets ``form``, ``problem`` (why nothing was submitted) and what all pages of the kit get."""
    title: Any = gettext_lazy("New job")

    # --- for subclasses -----------------------------------------------------------------------------------------

    def get_form(self, data: Any = None, files: Any = None) -> forms.BaseForm | None:
        """The form, bound if there are data; None for a view without one."""
        return None if self.form_class is None else self.form_class(data, files)

    def get_task_args(self, form: Any) -> Sequence[Any]:
        """The task's arguments by position, those after the job's ID; none."""
        return ()

    def get_task_kwargs(self, form: Any) -> Mapping[str, Any]:
        """The task's arguments by name: what the form found. They have to be what the task's queue can keep."""
        return {} if form is None else form.cleaned_data

    def get_status_fields(self, form: Any) -> Mapping[str, Any]:
        """Fields of the job's record, as its ``title``; its owner is the user, unless they say otherwise."""
        return {}

    def submit(self, form: Any) -> str:
        """Submit the job, and return its ID. Raises what `JobKit.enqueue` does."""
        task = self.get_task()
        self.refuse_if_full(task)
        fields = {**self._owner(), **self.get_status_fields(form)}
        return self.kit.enqueue(task, self.get_task_args(form), self.get_task_kwargs(form), **fields)

    def refuse_if_full(self, task: Any) -> None:
        """Raise `QueueFull` or `QueueStopped` if the task's backend would now, as far as it tells.

        For a `submit` of one's own, before it stores anything: a crowd that is turned away should leave nothing behind.
        """
        backend = get_backend() if callable(get_backend := getattr(task, "get_backend", None)) else None
        refuse: Callable[[Any], object] | None = getattr(backend, "jobkit_refuse_if_full", None)
        if refuse is not None:
            refuse(task)

    def get_context_data(self) -> Mapping[str, Any]:
        """What the template gets besides; nothing."""
        return {}

    def get_success_url(self, job_id: str) -> str:
        """Where a browser goes next: to the job's page."""
        return self.links.to("detail", job_id)

    def get_task(self) -> Any:
        """The task. Raises ImproperlyConfigured if the view has none."""
        task = inspect.getattr_static(self, "task")  # as it is: a function must not become a method of the view
        if isinstance(task, staticmethod):
            task = task.__func__
        if task is None:
            raise ImproperlyConfigured(f"{type(self).__name__} needs a task, or a submit() of its own.")
        return task

    # --- requests -----------------------------------------------------------------------------------------------

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.sends_json = request.content_type == "application/json"
        preferred = request.get_preferred_type(["text/html", "application/json"])
        self.wants_json = self.sends_json or preferred == "application/json"
        self.form: forms.BaseForm | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return KitView.dispatch(self, request, *args, **kwargs)  # past that of PageView, with its CSRF check

    dispatch.login_required = False  # type: ignore[attr-defined]

    def admit(self) -> None:
        super().admit()
        if self.request.method == "POST":
            self.refuse_forgery()

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        self.form = self.get_form()
        return self.show()

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        self.links.to("history")  # raises if there is no page to go to; afterwards there would be a job
        self.form = self.get_form(*self._sent())
        if self.form is not None and not self.form.is_valid():
            return self.show_errors(self.form)
        job_id = self.submit(self.form)
        return self.accepted(job_id) if self.wants_json else HttpResponseRedirect(self.get_success_url(job_id))

    # --- answers ------------------------------------------------------------------------------------------------

    def show(self, *, status: int = HTTPStatus.OK, problem: Any = "") -> HttpResponse:
        """The page with the form as it stands; ``problem`` says why nothing was submitted."""
        context = {"form": self.form, "problem": problem, "may_view": self.may(Action.VIEW), **self.get_context_data()}
        return self.page(self.template_name, str(self.title), status=status, **context)

    def show_errors(self, form: forms.BaseForm) -> HttpResponse:
        """The answer to what the form refuses."""
        if not self.wants_json:
            return self.show(status=HTTPStatus.BAD_REQUEST)
        message = _("The fields don’t hold what they should.")
        error = {"code": "invalid_form", "message": message, "fields": form.errors.get_json_data()}
        return json_body(json.dumps({"error": error}).encode(), HTTPStatus.BAD_REQUEST)

    def accepted(self, job_id: str) -> HttpResponse:
        """The answer to a program: where it can follow the job."""
        urls = {name: self.links.to(url, job_id) for name, url in _FOLLOW.items()}
        body = {"job_id": job_id, "state": str(State.QUEUED), "urls": urls}
        response = json_body(json.dumps(body).encode(), HTTPStatus.ACCEPTED)
        response["Location"] = urls["status"]
        return response

    def challenge(self) -> HttpResponseBase:
        return JSONView.challenge(self) if self.wants_json else super().challenge()  # type: ignore[arg-type]

    def explain(self, answer: Answer, error: Exception) -> HttpResponseBase:
        if self.wants_json:
            return JSONView.explain(self, answer, error)  # type: ignore[arg-type]
        if isinstance(error, _TRY_AGAIN) and self.request.method == "POST":
            return with_retry(self.show(status=answer.status, problem=answer.text), answer)  # what was typed stays
        return super().explain(answer, error)

    def _sent(self) -> tuple[Any, Any]:
        if not self.sends_json:
            return self.request.POST, self.request.FILES
        try:
            data = json.loads(self.request.body)
        except (ValueError, RecursionError) as error:
            raise NotAnObject from error
        if not isinstance(data, dict):
            raise NotAnObject
        return data, None

    def _owner(self) -> dict[str, str]:
        if not hasattr(self.kit.status_class, "owner"):
            return {}
        if (identity := getattr(self.kit.access, "identity", None)) is not None:
            return {"owner": identity(self.request)}  # by which the owner will be known again
        user = getattr(self.request, "user", None)
        return {"owner": user.get_username()} if user is not None and user.is_authenticated else {}


_FOLLOW = {"detail": "detail", "status": "status", "api": "api-job"}
_TRY_AGAIN = (QueueFull, QueueStopped, StatusUnavailable, StorageUnavailable)
