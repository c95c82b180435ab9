"""Reports: one self-contained page about what is proven of a model on some rows."""

from derand.report._evidence import to_evidence
from derand.report._monitor import Monitor, MonitorSummary
from derand.report._report import Report, require_format
from derand.report._settings import ReportSettings
from derand.report._summary import IntervalSummary, ReportSummary

__all__ = [
    "IntervalSummary",
    "Monitor",
    "MonitorSummary",
    "Report",
    "ReportSettings",
    "ReportSummary",
    "require_format",
    "to_evidence",
]
