"""Reports: one self-contained page about what is proven of a model on some rows."""

from derand.report._report import Report, require_format
from derand.report._settings import ReportSettings
from derand.report._summary import IntervalSummary, ReportSummary

__all__ = ["IntervalSummary", "Report", "ReportSettings", "ReportSummary", "require_format"]
