from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from django_jobkit.jobs.status import JobStatus, State, Status, json_field


def test_the_common_fields_stand_in_the_order_of_the_file():
    assert [field.name for field in dataclasses.fields(Status)] == [
        "job_id",
        "command",
        "state",
        "title",
        "error",
        "attempts",
        "queued_at",
        "updated_at",
    ]


def test_fields_are_given_by_name_only():
    with pytest.raises(TypeError):
        Status("a")


@pytest.mark.parametrize(
    ("state", "terminal"),
    [("queued", False), ("running", False), ("succeeded", True), ("failed", False), ("SUCCEEDED", False), ("", False)],
)
def test_only_a_success_is_terminal(state, terminal):
    assert Status(state=state).is_terminal is terminal


def test_a_state_is_the_text_it_stands_for():
    assert [str(state) for state in State] == ["queued", "running", "succeeded", "failed"]
    assert State.QUEUED == "queued"


def test_carry_over_takes_what_a_worker_cannot_know():
    prev = JobStatus(
        command="old", title="old", attempts=3, error="old", owner="mika", retry_of="j0", outputs=["a"], result=1
    )
    blank = JobStatus(attempts=9)
    blank.carry_over(prev)
    assert blank == JobStatus(command="old", title="old", attempts=3, owner="mika", retry_of="j0")

    given = JobStatus(command="new", title="new", owner="rin", error="mine")
    given.carry_over(prev)
    assert given == JobStatus(command="new", title="new", owner="rin", error="mine", attempts=3, retry_of="j0")


def test_the_app_decides_for_its_own_fields():
    @dataclass(kw_only=True)
    class Comic(Status):
        pages: int = json_field(0)

        def carry_over(self, prev):
            super().carry_over(prev)
            if isinstance(prev, Comic):
                self.pages = self.pages or prev.pages

    comic = Comic()
    comic.carry_over(Comic(pages=7, attempts=1))
    assert (comic.pages, comic.attempts) == (7, 1)
    comic.carry_over(Status(attempts=2))
    assert (comic.pages, comic.attempts) == (7, 2)


def test_a_default_list_is_each_status_own():
    first, second = JobStatus(), JobStatus()
    first.outputs.append("a.svg")
    assert second.outputs == []


def test_a_clone_shares_no_list_and_no_extra_with_the_original():
    status = JobStatus(outputs=["a"], result={"n": [1]})
    status.extra["pages"] = 7
    twin = status.clone()
    twin.outputs.append("b")
    twin.result["n"].append(2)
    twin.extra["pages"] = 8
    assert (status.outputs, status.result, status.extra) == (["a"], {"n": [1]}, {"pages": 7})


def test_extra_is_no_field_and_no_part_of_equality():
    status = Status()
    status.extra["x"] = 1
    assert status == Status()
    assert "x" not in dataclasses.asdict(status)


def test_an_unknown_omit_rule_is_refused():
    with pytest.raises(ValueError, match="'zero', 'empty' or 'never'"):
        json_field(0, omit="always")
