import io

import pytest
from django.core.management.base import OutputWrapper
from filereport.terminal import ProgressBar, printable, table


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run_bar(out):
    bar = ProgressBar(OutputWrapper(out), 2)
    bar.show("a.csv: started")
    bar.advance("succeeded  a.csv")
    bar.advance("failed     b.csv")
    bar.close()
    return out.getvalue()


def test_elsewhere_than_on_a_terminal_each_job_has_a_line():
    assert run_bar(io.StringIO()) == "  1/2  succeeded  a.csv\n  2/2  failed     b.csv\n"


def test_on_a_terminal_the_bar_is_drawn_over_itself():
    drawn = run_bar(Terminal()).split("\r")

    assert drawn[1].rstrip() == "[........................] 0/2  a.csv: started"
    assert drawn[2].rstrip() == "[############............] 1/2"
    assert drawn[-1].rstrip() == "[########################] 2/2"
    assert drawn[-1].endswith("\n")


def test_a_narrow_terminal_cuts_the_bar(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")

    assert all(len(line.rstrip("\n")) <= 19 for line in run_bar(Terminal()).split("\r"))


def test_tables_line_up():
    assert table([["State", "n"], ["failed", "12"], ["ok", "3"]], right={1}) == "State    n\nfailed  12\nok       3"


@pytest.mark.parametrize(
    ("text", "shown"), [("a\x1b[31mb", "a\ufffd[31mb"), ("Käse 猫", "Käse 猫"), ("a\nb", "a\ufffdb")]
)
def test_titles_cannot_steer_the_terminal(text, shown):
    assert printable(text) == shown
