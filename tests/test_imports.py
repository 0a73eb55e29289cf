"""The folder list is the architecture: what may import what."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import django_jobkit

PACKAGE = Path(django_jobkit.__file__).parent
SDKS = ("google", "boto3", "botocore", "storages", "redis", "django_redis", "celery", "filelock")

# A part may import itself and those before it on its row.
MAY_IMPORT = {
    "exceptions": set(),
    "_version": set(),
    "jobs": {"exceptions"},
    "storages": {"exceptions", "jobs"},
    "inprocess": {"exceptions"},
    "conf": set(),
    "signals": set(),
    "submission": {"exceptions", "jobs"},
    "kit": {"exceptions", "jobs", "storages", "conf", "signals", "submission"},
    "backends": {"exceptions", "jobs", "inprocess", "conf", "kit", "submission", "tracking"},
    "tracking": {"exceptions", "jobs", "inprocess", "kit", "conf", "engines", "job"},
    "job": {"exceptions", "jobs", "kit", "engines"},
    "engines": set(),
    "testing": {"exceptions", "jobs", "storages", "kit", "conf", "backends", "engines", "submission"},
}
FREE_OF_DJANGO = ("exceptions", "jobs", "inprocess")


def imports_of(path: Path) -> set[str]:
    """Absolute names of what a file imports at run time, whether at its top or inside a function."""
    package = ("django_jobkit", *path.relative_to(PACKAGE).parent.parts)
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types_only = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, *((node.module or "").split(".") if node.module else ())))
            found |= {f"{module}.{alias.name}" for alias in node.names}
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_in_one_direction(path):
    part = part_of(path)
    if part not in MAY_IMPORT:
        return
    own = {name.split(".")[1] for name in imports_of(path) if name.startswith("django_jobkit.")}
    assert own - {part, "_version", "__version__"} <= MAY_IMPORT[part]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_rules_know_no_django_and_only_adapters_know_an_sdk(path):
    roots = {name.split(".")[0] for name in imports_of(path)}
    if part_of(path) in FREE_OF_DJANGO:
        assert "django" not in roots
    if path.relative_to(PACKAGE).parts[0] not in ("storages", "backends", "oidc.py", "signing_keys.py"):
        assert not roots & set(SDKS)


def test_no_module_is_called_tasks():
    """Celery and others import ``<app>.tasks`` of every installed app by name."""
    assert not [path for path in FILES if path.stem == "tasks"]


@pytest.mark.parametrize("module", ["django_jobkit", "django_jobkit.jobs", "django_jobkit.exceptions"])
def test_importing_needs_neither_settings_nor_django(module):
    code = f"import sys, {module}; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_asking_for_the_kits_needs_no_settings_yet():
    code = "from django_jobkit import jobkits; import django_jobkit.storages; print(jobkits)"
    environment = {"PATH": ""}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = django_jobkit.nonsense
