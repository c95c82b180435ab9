"""Reports: `CertificateReport`, one self-contained page about what is proven of a model on some rows."""

from derand.report._report import CertificateReport
from derand.report._types import ReportSummary

__all__ = ["CertificateReport", "ReportSummary"]
