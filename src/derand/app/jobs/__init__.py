"""From files to files: train, tune or import a model, certify a table, audit that, report on it. Plain dicts out.

Owns the way from a file to a classifier and back to a file, and what is told of it: one file per job, and what they
share beside them. Must not know the command line or how results are printed, nor how files are read and which columns
are useful: `derand.tables` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from derand._core.later import import_later
from derand.app.settings import CertifySettings

if TYPE_CHECKING:
    from derand.app.jobs._auditing import AuditingSummary, audit_file
    from derand.app.jobs._certifying import CertifyingSummary, certify_file
    from derand.app.jobs._certifying_files import FilesSummary, certify_files
    from derand.app.jobs._classifiers import choose_model
    from derand.app.jobs._exporting import ExportingSummary, export_file
    from derand.app.jobs._importing import ImportingSummary, import_file
    from derand.app.jobs._reporting import ReportSummary, report_file, report_numbers_file
    from derand.app.jobs._request import ThreatSummary
    from derand.app.jobs._running import CheckSummary, RunSummary, check_run, run_file
    from derand.app.jobs._starting import StartSummary, init_file
    from derand.app.jobs._tasks import TASKS, list_trainers
    from derand.app.jobs._training import ColumnSummary, TrainingSummary, train_file
    from derand.app.jobs._tuning import FileTuningSummary, tune_file

__all__ = [
    "TASKS",
    "AuditingSummary",
    "CertifySettings",
    "CertifyingSummary",
    "CheckSummary",
    "ColumnSummary",
    "ExportingSummary",
    "FileTuningSummary",
    "FilesSummary",
    "ImportingSummary",
    "ReportSummary",
    "RunSummary",
    "StartSummary",
    "ThreatSummary",
    "TrainingSummary",
    "audit_file",
    "certify_file",
    "certify_files",
    "check_run",
    "choose_model",
    "export_file",
    "import_file",
    "init_file",
    "list_trainers",
    "report_file",
    "report_numbers_file",
    "run_file",
    "train_file",
    "tune_file",
]

_HOMES = {
    "AuditingSummary": "_auditing",
    "CertifyingSummary": "_certifying",
    "CheckSummary": "_running",
    "ColumnSummary": "_training",
    "ExportingSummary": "_exporting",
    "FilesSummary": "_certifying_files",
    "FileTuningSummary": "_tuning",
    "ImportingSummary": "_importing",
    "ReportSummary": "_reporting",
    "RunSummary": "_running",
    "StartSummary": "_starting",
    "TASKS": "_tasks",
    "ThreatSummary": "_request",
    "TrainingSummary": "_training",
    "audit_file": "_auditing",
    "certify_file": "_certifying",
    "certify_files": "_certifying_files",
    "check_run": "_running",
    "choose_model": "_classifiers",
    "export_file": "_exporting",
    "import_file": "_importing",
    "init_file": "_starting",
    "list_trainers": "_tasks",
    "report_file": "_reporting",
    "report_numbers_file": "_reporting",
    "run_file": "_running",
    "train_file": "_training",
    "tune_file": "_tuning",
}
__getattr__ = import_later(__name__, _HOMES)
