"""From files to files: train, tune or import a model, certify a table, audit that, report on it. Plain dicts out.

Owns the way from a file to a classifier and back to a file, and what is told of it: one file per job, and what they
share beside them. Must not know the command line or how results are printed, nor how files are read and which columns
are useful: `derand.tables` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from derand._core.later import import_later
from derand.app.settings import (
    AuditSettings,
    CertifySettings,
    ImportSettings,
    InitSettings,
    ReportFileSettings,
    TrainSettings,
    TuneSettings,
)

if TYPE_CHECKING:
    from derand.app.jobs._auditing import AuditingSummary, audit_file
    from derand.app.jobs._certifying import CertifyingSummary, certify_file
    from derand.app.jobs._certifying_files import FilesSummary, certify_files
    from derand.app.jobs._classifiers import choose_model
    from derand.app.jobs._exporting import ExportingSummary, export_file
    from derand.app.jobs._importing import ImportingSummary, import_file
    from derand.app.jobs._reporting import ReportSummary, report_file
    from derand.app.jobs._request import ThreatSummary
    from derand.app.jobs._tasks import list_trainers
    from derand.app.jobs._training import ColumnSummary, TrainingSummary, train_file
    from derand.app.jobs._tuning import FileTuningSummary, tune_file
    from derand.app.run._running import CheckSummary, RunSummary, check_run, run_file
    from derand.app.run._starting import StartSummary, init_file

__all__ = [
    "AuditSettings",
    "AuditingSummary",
    "CertifySettings",
    "CertifyingSummary",
    "CheckSummary",
    "ColumnSummary",
    "ExportingSummary",
    "FileTuningSummary",
    "FilesSummary",
    "ImportSettings",
    "ImportingSummary",
    "InitSettings",
    "ReportFileSettings",
    "ReportSummary",
    "RunSummary",
    "StartSummary",
    "ThreatSummary",
    "TrainSettings",
    "TrainingSummary",
    "TuneSettings",
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
    "run_file",
    "train_file",
    "tune_file",
]

_HOMES = {
    "AuditingSummary": "jobs._auditing",
    "CertifyingSummary": "jobs._certifying",
    "CheckSummary": "run._running",
    "ColumnSummary": "jobs._training",
    "ExportingSummary": "jobs._exporting",
    "FilesSummary": "jobs._certifying_files",
    "FileTuningSummary": "jobs._tuning",
    "ImportingSummary": "jobs._importing",
    "ReportSummary": "jobs._reporting",
    "RunSummary": "run._running",
    "StartSummary": "run._starting",
    "ThreatSummary": "jobs._request",
    "TrainingSummary": "jobs._training",
    "audit_file": "jobs._auditing",
    "certify_file": "jobs._certifying",
    "certify_files": "jobs._certifying_files",
    "check_run": "run._running",
    "choose_model": "jobs._classifiers",
    "export_file": "jobs._exporting",
    "import_file": "jobs._importing",
    "init_file": "run._starting",
    "list_trainers": "jobs._tasks",
    "report_file": "jobs._reporting",
    "run_file": "run._running",
    "train_file": "jobs._training",
    "tune_file": "jobs._tuning",
}
__getattr__ = import_later("derand.app", _HOMES)
