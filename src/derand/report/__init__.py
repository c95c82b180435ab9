"""Reports: `CertificateReport`, one self-contained page about what is proven of a model on some rows."""

from derand.report._report import CertificateReport

__all__ = ["CertificateReport"]
