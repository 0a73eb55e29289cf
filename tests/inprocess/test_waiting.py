from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from django_jobkit.inprocess.waiting import WaitingLine


def line_of(*things, now=0.0):
    line = WaitingLine()
    for thing, priority in things:
        line.add(thing, priority=priority, now=now)
    return line


def take_all(line):
    return "".join(line.take() for _ in range(line.ready))


def test_the_highest_priority_is_taken_first_and_first_come_first_served_within_one():
    assert take_all(line_of(("a", 0), ("b", -100), ("c", 100), ("d", 0), ("e", 100))) == "ceadb"


def test_things_are_never_compared():
    class Incomparable:
        __lt__ = __eq__ = None

    line = WaitingLine()
    for _ in range(3):
        line.add(Incomparable(), priority=0, now=0.0)
        line.add_delayed(Incomparable(), priority=0, due=1.0)
    line.promote(1.0)
    assert len(line.clear()) == 6


def test_nothing_can_be_taken_from_an_empty_line():
    with pytest.raises(ValueError, match="empty"):
        WaitingLine().take()


def test_a_delayed_thing_comes_into_the_line_at_its_time():
    line = WaitingLine()
    line.add_delayed("d", priority=0, due=10.0)
    assert (line.promote(9.99), line.ready, line.delayed, line.next_due) == (0, 0, 1, 10.0)
    assert (line.promote(10.0), line.ready, line.delayed, line.next_due) == (1, 1, 0, None)


def test_a_delayed_thing_stands_where_one_would_that_had_come_at_its_time():
    line = line_of(("a", 0), now=5.0)
    line.add_delayed("c", priority=0, due=10.0)
    line.add_delayed("b", priority=0, due=9.0)
    line.add_delayed("x", priority=1, due=10.0)
    line.promote(11.0)
    line.add("d", priority=0, now=11.0)
    assert take_all(line) == "xabcd"


def test_what_is_due_at_one_time_keeps_its_order():
    line = WaitingLine()
    for thing in "abcdef":
        line.add_delayed(thing, priority=0, due=1.0)
    line.promote(1.0)
    assert take_all(line) == "abcdef"


def test_the_longest_wait_is_since_the_earliest_time_of_any_that_should_be_in_the_line():
    line = WaitingLine()
    assert line.longest_wait(9.0) == 0.0
    line.add_delayed("late", priority=9, due=5.0)
    assert line.longest_wait(4.0) == 0.0
    line.add("b", priority=0, now=4.5)
    line.add("a", priority=5, now=4.6)
    assert line.longest_wait(4.75) == 0.25
    line.take(), line.take()
    assert line.longest_wait(8.0) == 3.0  # though nobody has promoted it
    line.promote(8.0)
    assert line.longest_wait(8.0) == 3.0


def test_due_later_counts_those_whose_time_has_not_come_though_nobody_has_promoted_the_others():
    line = WaitingLine()
    for due in (1.0, 2.0, 3.0):
        line.add_delayed("d", priority=0, due=due)
    assert [line.due_later(now) for now in (0.0, 1.0, 2.5, 3.0)] == [3, 2, 1, 0]
    assert line.delayed == 3


def test_what_was_added_can_be_withdrawn_while_it_is_there():
    line = line_of(("a", 0), ("c", 0), ("x", 1))
    added, delayed = line.add("b", priority=3, now=0.0), line.add_delayed("d", priority=0, due=9.0)
    assert line.withdraw(added)
    assert not line.withdraw(added)
    assert line.withdraw(delayed)
    assert (take_all(line), line.delayed) == ("xac", 0)
    taken = line.add("e", priority=0, now=0.0)
    line.take()
    assert not line.withdraw(taken)


def test_what_has_been_cleared_can_not_be_withdrawn_as_well():
    line = WaitingLine()
    added = [line.add("a", priority=0, now=0.0), line.add_delayed("b", priority=0, due=1.0)]
    assert line.clear() == ["a", "b"]
    assert [line.withdraw(one) for one in added] == [False, False]


def test_the_order_of_the_others_survives_a_withdrawal():
    times = [0, 10, 1, 11, 12, 2, 3]
    line = WaitingLine()
    added = [line.add_delayed(time, priority=0, due=time) for time in times]
    line.withdraw(added[0])
    assert line.promote(5) == 3
    assert [line.take() for _ in range(3)] == [1, 2, 3]


def test_who_is_interrupted_while_adding_can_withdraw_though_the_lane_was_closed_meanwhile():
    line = WaitingLine()
    lane, entry = line.add("a", priority=5, now=0.0)
    assert (line.take(), line.ready) == ("a", 0)  # the last one of its lane
    lane.append(entry)  # what the interrupted one does next, too late
    assert line.ready == 0
    assert line.withdraw((lane, entry))


def test_a_lane_that_was_opened_but_not_used_yet_is_no_obstacle():
    line = line_of(("a", 0))
    line._lanes[9] = []  # as far as somebody came who was interrupted
    assert (line.ready, line.depth(0), line.longest_wait(3.0)) == (1, 1, 3.0)
    assert line.take() == "a"


@pytest.mark.parametrize(
    ("ready", "delayed", "free", "depth"),
    [
        (0, 0, 4, 0),
        (3, 0, 4, 0),  # each is about to be taken
        (6, 0, 4, 2),
        (6, 0, 0, 6),
        (0, 2, 4, 2),  # no worker will take what isn't due
        (6, 2, 4, 4),
    ],
)
def test_depth_counts_the_delayed_and_those_for_whom_nobody_is_free(ready, delayed, free, depth):
    line = line_of(*[("r", 0)] * ready)
    for _ in range(delayed):
        line.add_delayed("d", priority=0, due=1.0)
    assert line.depth(free) == depth


def test_clearing_returns_all_in_the_order_in_which_they_would_have_been_taken():
    line = line_of(("b", 0), ("a", 1), ("c", 0))
    line.add_delayed("e", priority=7, due=9.0)
    line.add_delayed("d", priority=0, due=8.0)
    assert "".join(line.clear()) == "abcde"
    assert (line.ready, line.delayed, line.clear()) == (0, 0, [])


class AgainstASortedList(RuleBasedStateMachine):
    """Whatever is done, the order is that of a plain sort by priority and arrival."""

    def __init__(self):
        super().__init__()
        self.line = WaitingLine()
        self.now = 0
        self.number = 0
        self.model = []  # (arrival, number, priority, number): at one time, what was added first comes first

    def arrived(self):
        return sorted((m for m in self.model if m[0] <= self.now), key=lambda m: (-m[2], m[0], m[1]))

    @rule(priority=st.integers(-2, 2), delay=st.integers(0, 5))
    def add(self, priority, delay):
        self.number += 1
        self.model.append((self.now + delay, self.number, priority, self.number))
        if delay:
            self.line.add_delayed(self.number, priority=priority, due=self.now + delay)
        else:
            self.line.add(self.number, priority=priority, now=self.now)

    @rule(seconds=st.integers(1, 4))
    def time_passes(self, seconds):
        self.now += seconds

    @precondition(lambda self: self.arrived())
    @rule()
    def take(self):
        first = self.arrived()[0]
        self.line.promote(self.now)
        assert self.line.take() == first[3]
        self.model.remove(first)

    @rule()
    def clear(self):
        self.line.promote(self.now)
        later = sorted(m for m in self.model if m[0] > self.now)
        assert self.line.clear() == [m[3] for m in self.arrived() + later]
        self.model.clear()

    @invariant()
    def counts_agree(self):
        arrived = self.arrived()
        later = [m[0] for m in self.model if m[0] > self.now]
        assert self.line.ready + self.line.delayed == len(self.model)
        assert self.line.due_later(self.now) == len(later)
        assert self.line.longest_wait(self.now) == self.now - min((m[0] for m in arrived), default=self.now)


TestAgainstASortedList = AgainstASortedList.TestCase
TestAgainstASortedList.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
