"""From files to files: train on a table, certify a table, report on it. Plain dicts out.

Owns the way from a file to a classifier and back to a file, and what is told of it: one file per job, and what they
share beside them. Must not know the command line or how results are printed, nor how files are read and which columns
are useful: `derand.frames` does.
"""

from __future__ import annotations

from derand.jobs._certifying import CertifyingSummary, certify_file
from derand.jobs._reporting import ReportSummary, report_file
from derand.jobs._request import ThreatSummary
from derand.jobs._training import ColumnSummary, TrainingSummary, train_file

__all__ = [
    "CertifyingSummary",
    "ColumnSummary",
    "ReportSummary",
    "ThreatSummary",
    "TrainingSummary",
    "certify_file",
    "report_file",
    "train_file",
]
