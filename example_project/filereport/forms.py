from __future__ import annotations

from pathlib import PurePath
from typing import Any

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.template.defaultfilters import filesizeformat
from django.utils.functional import lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from . import samples
from .analysis import KINDS, FileProblem, kind_of


def _what_is_read() -> str:
    most = filesizeformat(settings.REPORT_MAX_BYTES)
    return gettext("%(kinds)s, at most %(most)s") % {"kinds": ", ".join(KINDS), "most": most}


class ReportForm(forms.Form):
    """A file of one's own, or one that comes with the site. After `is_valid`, ``picked`` holds its name and bytes."""

    file = forms.FileField(
        label=_("A file of your own"),
        required=False,
        help_text=lazy(_what_is_read, str)(),
        widget=forms.FileInput(attrs={"accept": ",".join(KINDS)}),
    )
    sample = forms.ChoiceField(
        label=_("Or one of these"),
        required=False,
        choices=list(samples.SAMPLES.items()),
    )
    picked: tuple[str, bytes]

    def clean_file(self) -> UploadedFile[bytes] | None:
        file: UploadedFile[bytes] | None = self.cleaned_data["file"]
        if file is None:
            return None
        if (file.size or 0) > settings.REPORT_MAX_BYTES:
            most = filesizeformat(settings.REPORT_MAX_BYTES)
            text = gettext("The file has %(size)s; at most %(most)s are read.")
            raise forms.ValidationError(text % {"size": filesizeformat(file.size or 0), "most": most})
        try:
            kind_of(file.name or "")
        except FileProblem as problem:
            raise forms.ValidationError(str(problem)) from problem
        return file

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if file := cleaned.get("file"):  # a radio button can't be let go of, so the file wins
            name = PurePath(file.name)
            self.picked = f"{name.stem[:150]}{name.suffix}", file.read()
        elif sample := cleaned.get("sample"):
            self.picked = sample, samples.read(sample)
        elif not self.errors:
            raise forms.ValidationError(gettext("Pick a file."))
        return cleaned
