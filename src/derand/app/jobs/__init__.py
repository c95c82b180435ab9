"""From files to files: train, tune or import a model, certify a table, audit that, report on it. Plain dicts out.

Owns the way from a file to a classifier and back to a file, and what is told of it: one file per job, and what they
share beside them. Must not know the command line or how results are printed, nor how files are read and which columns
are useful: `derand.tables` does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from derand._core.later import import_later
from derand.app.settings import AuditSettings as AuditSettings
from derand.app.settings import CertifySettings as CertifySettings
from derand.app.settings import ImportSettings as ImportSettings
from derand.app.settings import InitSettings as InitSettings
from derand.app.settings import MonitorSettings as MonitorSettings
from derand.app.settings import ProveSettings as ProveSettings
from derand.app.settings import ReportFileSettings as ReportFileSettings
from derand.app.settings import TrainSettings as TrainSettings
from derand.app.settings import TuneSettings as TuneSettings

if TYPE_CHECKING:
    from derand.app.jobs._auditing import audit_file as audit_file
    from derand.app.jobs._certifying import certify_file as certify_file
    from derand.app.jobs._classifiers import choose_model as choose_model
    from derand.app.jobs._exporting import export_file as export_file
    from derand.app.jobs._importing import import_file as import_file
    from derand.app.jobs._monitoring import monitor_file as monitor_file
    from derand.app.jobs._proving import prove_file as prove_file
    from derand.app.jobs._reporting import report_file as report_file
    from derand.app.jobs._training import train_file as train_file
    from derand.app.jobs._tuning import tune_file as tune_file
    from derand.app.run._running import check_run as check_run
    from derand.app.run._running import run_file as run_file
    from derand.app.run._starting import init_file as init_file

_HOMES = {
    "audit_file": "jobs._auditing",
    "certify_file": "jobs._certifying",
    "check_run": "run._running",
    "choose_model": "jobs._classifiers",
    "export_file": "jobs._exporting",
    "import_file": "jobs._importing",
    "init_file": "run._starting",
    "monitor_file": "jobs._monitoring",
    "prove_file": "jobs._proving",
    "report_file": "jobs._reporting",
    "run_file": "run._running",
    "train_file": "jobs._training",
    "tune_file": "jobs._tuning",
}
__getattr__ = import_later("derand.app", _HOMES)
