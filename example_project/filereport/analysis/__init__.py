"""From the bytes of a text or CSV file to a report. Imports no Django; nothing here reads or writes files."""

from .pipeline import KINDS, Report, analyse, kind_of
from .reading import FileProblem

__all__ = ["KINDS", "FileProblem", "Report", "analyse", "kind_of"]
