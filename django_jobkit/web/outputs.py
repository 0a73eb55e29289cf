"""A job's outputs: which names are files of its own, where they are linked to, and how their bytes are reached.

Names come from a record, and files from whoever the job worked for: neither is to be believed.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import stat
import unicodedata
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from django.core.files import File
from django.core.files.storage import FileSystemStorage

from ..jobs.status import Status
from ..kit import JobKit
from ..storages.faults import unavailable
from .display import member
from .links import Links

_NO_SUCH_FILE: Final = {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

logger = logging.getLogger("django_jobkit.views")


class Output(NamedTuple):
    """A file that the job made. ``url`` is empty where there is none that may be linked to."""

    name: str
    url: str


class OpenFile(NamedTuple):
    """``size`` in bytes is None for a file that can't be read from any place but its beginning."""

    file: File[Any]
    size: int | None


def outputs_of(kit: JobKit, links: Links, job_id: str, status: Status) -> list[Output]:
    """The outputs that the status names, in its order, with the storage's own URLs where it signs them."""
    found = []
    for name in names_of(status):
        path = storage_name(kit, job_id, name)
        found.append(Output(name, path and (signed_url(kit, path) or links.to("output", job_id, name))))
    return found


def names_of(status: Status) -> list[str]:
    """What the record lists as outputs, whatever it may lead to."""
    names = member(status, "outputs")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list | tuple) else []


def storage_name(kit: JobKit, job_id: str, name: str) -> str:
    """The output's name in the storage; empty for one that leads elsewhere, or can't be shown as what it is."""
    printable = all(char.isprintable() or unicodedata.category(char) == "Zs" for char in name)
    if _SCHEME.match(name) or name != name.strip() or not printable:
        return ""
    try:
        return kit.output_name(job_id, name)
    except ValueError:
        return ""


def signed_url(kit: JobKit, path: str) -> str:
    """The storage's own URL of a file, if it lets in who has it for some time only; otherwise empty.

    A storage that doesn't sign has URLs for everybody and for good, if any. The kit serves the file itself then.
    """
    try:
        url = kit.django_storage.url(path)
    except NotImplementedError:
        return ""
    except Exception as error:
        # A storage may fail to sign for reasons of its own; the file can be served all the same.
        logger.info("no signed URL for %a: %s", path, error)
        return ""
    return url if urlsplit(url).scheme in ("", "http", "https") and is_signed(url) else ""


def is_signed(url: str) -> bool:
    """Whether a storage has signed this URL, as told by what stands in it, and not by the storage's options.

    Those differ by service and version, and some have no effect: S3 behind a ``custom_domain`` signs with a key of
    CloudFront's only, whatever ``querystring_auth`` says. The parameters are ``X-Amz-Signature``, ``X-Goog-Signature``,
    ``Signature`` (CloudFront, and the services' older way) and ``sig`` (Azure). A signature by any other name is taken
    for none.
    """
    names = [name.lower() for name, _value in parse_qsl(urlsplit(url).query)]
    return any(name == "sig" or name.endswith("signature") for name in names)


def open_output(kit: JobKit, job_id: str, path: str) -> OpenFile:
    """Open a file of the job's for reading, through the site's storage. The caller closes it.

    Raises FileNotFoundError if there is none in the job's own directory, and `StorageUnavailable`.
    """
    with unavailable("read", path):
        _refuse_links(kit, job_id, path)
        file = kit.django_storage.open(path, "rb")
        try:
            return OpenFile(file, _size_of(file))
        except BaseException:
            file.close()
            raise


def _refuse_links(kit: JobKit, job_id: str, path: str) -> None:
    """Raise FileNotFoundError where, on a disk, the name stands for no file in the job's directory.

    It may be a symbolic link out of it, or a pipe that nobody writes to, from an archive that the job unpacked.
    """
    storage = kit.django_storage
    if not isinstance(storage, FileSystemStorage):
        return
    directory, file = (os.path.realpath(storage.path(name)) for name in (kit.job_dir(job_id), path))
    try:
        is_file = stat.S_ISREG(os.stat(file).st_mode)
    except OSError as error:
        if error.errno in _NO_SUCH_FILE:
            raise FileNotFoundError(path) from error
        raise
    if not (is_file and file.startswith(directory + os.sep)):
        raise FileNotFoundError(path)


def _size_of(file: File[Any]) -> int | None:
    """Of the very file that is open: one of its name may take its place meanwhile."""
    if not file.seekable():
        return None
    file.seek(0, os.SEEK_END)
    size = int(file.tell())
    file.seek(0)
    return size
