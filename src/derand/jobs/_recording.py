"""Records beside certified files: what was asked, and of which files. Must not know what is certified, nor audits."""

from __future__ import annotations

from pathlib import Path

from derand import __version__
from derand.files import PathLike
from derand.noise import Noise
from derand.storage import CertificateRecord, NumbersRequest, find_record, mark_file, save_record
from derand.threat import Threat


def write_record(
    model: PathLike,
    data: PathLike,
    output: PathLike,
    *,
    n_rows: int,
    rule: str,
    proof: str,
    noise: Noise | None,
    threat: Threat,
    numbers: NumbersRequest | None = None,
) -> Path:
    """Write what the certificates in a file are about beside it; the record's path.

    Parameters
    ----------
    model, data, output : path-like
        What was certified, and where the certificates are.
    n_rows, rule, proof, noise, threat, numbers
        As for `CertificateRecord`.
    """
    path, (model_mark, data_mark, output_mark) = find_record(output), (mark_file(one) for one in (model, data, output))
    asked = (n_rows, rule, proof, noise, threat, numbers)
    save_record(CertificateRecord(__version__, model_mark, data_mark, output_mark, *asked), path)
    return path
