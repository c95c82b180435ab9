"""Records beside certified files: what was asked, and of which files. Must not know what is certified, nor audits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from derand import __version__
from derand._core.files import PathLike, require_writable
from derand.noise import Noise
from derand.storage import CertificateRecord, NumbersRequest, find_record, mark_file, save_record
from derand.tables import names_stream
from derand.threat import Threat


def require_places(output: PathLike, inputs: Sequence[PathLike], *, with_record: bool = True) -> None:
    """Refuse a result, and the record beside it, that could not be written, or is one of the inputs."""
    if names_stream(output):
        return
    files = [path for path in inputs if not names_stream(path)]
    require_writable(output, *files)
    if with_record:
        require_writable(find_record(output), *files)


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
) -> Path | None:
    """Write what the certificates in a file are about beside it; the record's path, None where it is no file.

    `model`, `data`, `output`: what was certified, and where the certificates are; `n_rows`, `rule`, `proof`, `noise`,
    `threat`, `numbers`: as for `CertificateRecord`.
    """
    if names_stream(data) or names_stream(output):
        return None
    path, (model_mark, data_mark, output_mark) = find_record(output), (mark_file(one) for one in (model, data, output))
    asked = (n_rows, rule, proof, noise, threat, numbers)
    save_record(CertificateRecord(__version__, model_mark, data_mark, output_mark, *asked), path)
    return path
