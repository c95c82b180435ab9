"""Reports: one self-contained page about what is proven of a model on some rows.

`CertificateReport` is about classifiers, `IntervalReport` about regressors.
"""

from derand.report._interval_report import IntervalReport
from derand.report._interval_types import IntervalSummary
from derand.report._report import CertificateReport
from derand.report._types import ReportSummary

__all__ = ["CertificateReport", "IntervalReport", "IntervalSummary", "ReportSummary"]
