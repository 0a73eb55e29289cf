"""The Japanese texts, those of the example site too, are complete, current and compiled, and reach the pages."""

from __future__ import annotations

import ast
import gettext
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from django.contrib.auth import get_user_model
from django.urls import reverse
from django.utils import translation

import django_jobkit
from tests.components import require_program

PACKAGE = Path(django_jobkit.__file__).parent
EXAMPLE = PACKAGE.parent / "example_project" / "filereport"
CATALOG = Path("locale/ja/LC_MESSAGES/django.po")
HOW = (
    "In the directory of the app: django-admin makemessages -l ja --no-wrap --no-obsolete --add-location file, "
    "translate what is new, then django-admin compilemessages -l ja"
)
# What a translation has to keep: values that are filled in, markup, and names that a program knows.
_KEPT = re.compile(r"%\(\w+\)[a-z]|%[%sd]|\{\w*\}|</?[a-z][^>]*>|&\w+;|X-CSRFToken|RFC 3339")


class Entry(NamedTuple):
    """A text and its translation. ``plural`` and ``context`` are empty where there are none."""

    text: str
    plural: str
    context: str
    translation: str
    fuzzy: bool

    @property
    def key(self) -> tuple[str, str, str]:
        return self.context, self.text, self.plural

    @property
    def compiled_key(self) -> str | tuple[str, int]:
        """How Python's gettext names it; the context before a U+0004."""
        name = f"{self.context}\x04{self.text}" if self.context else self.text
        return (name, 0) if self.plural else name


def read_po(path: Path) -> list[Entry]:
    """The entries of a file for a language with one plural form, without its header; obsolete ones are left out."""
    entries = []
    for block in re.split(r"\n\s*\n", path.read_text("utf-8")):
        members: dict[str, str] = {}
        name = ""
        for line in block.splitlines():
            if match := re.match(r'(msg\w+(?:\[\d+\])?) (".*)', line):
                name, quoted = match.groups()
                members[name] = ast.literal_eval(quoted)
            elif line.startswith('"'):
                members[name] += ast.literal_eval(line)
        if members.get("msgid"):
            translated = members.get("msgstr[0]", members.get("msgstr", ""))
            fuzzy = re.search(r"^#,.*\bfuzzy\b", block, re.M) is not None
            plural, context = members.get("msgid_plural", ""), members.get("msgctxt", "")
            entries.append(Entry(members["msgid"], plural, context, translated, fuzzy))
    return entries


@pytest.fixture(scope="module", params=[(PACKAGE, 150), (EXAMPLE, 20)], ids=["package", "example"])
def app(request) -> Path:
    """The directory of an app with texts."""
    directory, least = request.param
    assert len(read_po(directory / CATALOG)) > least  # or the reader, not the catalog, is wrong
    return directory


@pytest.fixture(scope="module")
def entries(app) -> list[Entry]:
    return read_po(app / CATALOG)


def test_every_text_is_translated(entries):
    assert [entry.text for entry in entries if not entry.translation.strip()] == [], HOW


def test_no_translation_is_a_guess(entries):
    assert [entry.text for entry in entries if entry.fuzzy] == [], "msgmerge guessed: check them, take the mark away"


def test_translations_keep_placeholders_and_markup(entries):
    def kept(text: str) -> list[str]:
        return sorted(_KEPT.findall(text))

    # One plural form: it may be shown with any number, so it has to have what the plural has.
    wrong = [entry.text for entry in entries if kept(entry.plural or entry.text) != kept(entry.translation)]
    assert wrong == []


def test_the_compiled_catalog_is_that_of_the_text(app, entries):
    with (app / CATALOG.with_suffix(".mo")).open("rb") as file:
        compiled = gettext.GNUTranslations(file)._catalog
    header = {"": compiled[""]}
    assert compiled == {entry.compiled_key: entry.translation for entry in entries} | header, HOW


@pytest.mark.component
def test_the_catalog_has_the_texts_of_the_source(app, entries, tmp_path):
    for program in ("xgettext", "msguniq", "msgmerge"):
        require_program(program, "apt-get install gettext")
    copy = tmp_path / app.name
    shutil.copytree(app, copy, ignore=shutil.ignore_patterns("__pycache__", "locale"))
    (copy / "locale").mkdir()
    # -P: nothing there may be taken for a module of that name.
    command = [sys.executable, "-P", "-m", "django", "makemessages", "-l", "ja", "--no-wrap"]
    environ = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    done = subprocess.run(command, cwd=copy, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    extracted = {entry.key for entry in read_po(copy / CATALOG)}
    translated = {entry.key for entry in entries}
    assert extracted - translated == set(), f"new texts. {HOW}"
    assert translated - extracted == set(), f"texts that are no longer used. {HOW}"


@pytest.mark.django_db
def test_the_history_is_in_japanese(jobkit, client):
    then = datetime(2026, 8, 31, 10, 20, 30, tzinfo=UTC)
    for number, state in enumerate(["queued", "running", "succeeded", "failed"]):
        job = jobkit.store.status_class(state=state, queued_at=then, started_at=then, finished_at=then)
        jobkit.store.save(f"job-20260831-102030-{number:012x}", job)
    client.force_login(get_user_model().objects.create_superuser("boss"))
    with translation.override("ja"):
        page = client.get(reverse("jobkit:history")).content.decode()
    assert '<html lang="ja"' in page
    headings = re.findall(r'<th scope="col"[^>]*>(?:<span[^>]*>)?([^<]+)', page)
    assert headings == [
        *("選択", "状態", "ジョブ", "コマンド", "試行回数", "進捗", "登録日時", "更新日時", "所要時間"),
    ]
    badges = re.findall(r'<td class="jobkit-cell-state">.*?<bdi>([^<]+)', page, re.S)
    assert sorted(badges) == sorted(["待機中", "実行中", "完了", "失敗"])
    assert 'data-label="登録日時"' in page
    assert "2026年8月31日 10:20:30" in page
