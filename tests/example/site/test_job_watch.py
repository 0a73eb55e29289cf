from filereport.job_watch import JobWatch

from django_jobkit import jobkits
from django_jobkit.jobs import JobStatus, State


def save(job_id, state, **fields):
    jobkits["default"].store.save(job_id, JobStatus(state=state, **fields))


def test_each_job_is_yielded_once_when_it_ends_and_the_others_are_heard_of_meanwhile():
    said = []
    with JobWatch() as watch:
        save("a", State.QUEUED)
        save("a", State.RUNNING, title="a.csv")
        save("a", State.RUNNING, title="a.csv", progress_message="Measuring")
        save("somebody-elses", State.FAILED)
        save("a", State.SUCCEEDED)
        save("a", State.SUCCEEDED)
        save("b", State.FAILED)
        ended = [(status.job_id, str(status.state)) for status in watch.until_ended(["a", "b"], said.append)]

    assert ended == [("a", "succeeded"), ("b", "failed")]
    assert said == ["a.csv: started", "a.csv: Measuring"]
