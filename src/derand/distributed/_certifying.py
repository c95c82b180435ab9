"""Certifying Dask dataframes, partition by partition.

Owns how the model travels and what the result looks like before it is computed. Must not know how rows are certified.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from derand._core.origin import Fitted, Frame
from derand._core.text import Facts
from derand.storage import load_bytes, write_bytes


def certify(estimator: Fitted, data: Frame, *, keep: Sequence[str] = (), **asked: Any) -> Any:
    """Certify every partition of a Dask dataframe; nothing is computed before its result is asked for.

    Parameters
    ----------
    estimator : fitted classifier or regressor
        Trained by `fit` of this package or by its own, or read by `from_model`. It travels to each worker once.
    data : Dask dataframe
        Columns that the model does not read are left out, but for those that are kept.
    keep : sequence of str
        Columns of `data` that stand beside the certificates, such as an identifier to join by: partitions that were
        read from files each have an index from 0 on.
    **asked
        As for `certify` of the classifier: `l0`, `threat`, `rule`, `proof`, `noise`, ...; as for `certify_interval` of
        a regressor, or with a `tolerance` for `certify_radius`. One thread is used per partition: Dask works on as many
        at a time as there are cores.

    Returns
    -------
    Dask dataframe
        With the index of `data`: what is kept, then label, failure, radius or verdict, and proof, or of numbers value,
        low and high, as `to_frame` of certificates has them.
        Its `to_parquet` writes one file per partition.
    """
    if not hasattr(estimator, "ensemble_"):
        raise ValueError(f"`estimator` must be fitted, got a {type(estimator).__name__} that is not.")
    if not hasattr(data, "map_partitions"):
        raise TypeError(
            f"`data` must be a Dask dataframe, got a {type(data).__name__}: use `estimator.certify` for a table in "
            "memory, or `certify_files` for files."
        )
    import dask

    if np.ndim(asked.get("l0", 0)):
        raise ValueError("`l0` must be one number here: certify once for each.")
    names = [str(name) for name in estimator.encoding_.names or ()]
    kept = list(dict.fromkeys(keep))
    missing = [name for name in (*names, *kept) if name not in data.columns]
    if missing:
        raise ValueError(f"`data` has no column {missing[0]!r}: the model was trained with {', '.join(names[:8])} ...")
    options = {"n_jobs": 1, **asked}
    meta = _make_meta(estimator, options)
    meta = _join(data._meta[kept].reset_index(drop=True), meta.reset_index(drop=True)) if kept else meta
    content = dask.delayed(write_bytes(estimator), traverse=False)
    every = [*names, *(name for name in kept if name not in names)]
    return data[every].map_partitions(_certify_part, content, options, (names, kept), meta, meta=meta)


def _make_meta(estimator: Fitted, options: dict[str, object]) -> Any:
    """The result of no rows."""
    row = estimator.decode_rows(np.zeros((1, estimator.encoding_.n_features)))
    return _certify(estimator, row, options).iloc[:0]


def _certify(estimator: Any, rows: object, options: dict[str, Any]) -> Any:
    """Certificates of rows as a frame; of numbers their intervals, or radii of a tolerance."""
    if not hasattr(estimator, "certify_interval"):
        return estimator.certify(rows, **options).to_frame()
    prove = estimator.certify_radius if "tolerance" in options else estimator.certify_interval
    return prove(rows, **options).to_frame()


def _certify_part(
    frame: Frame, content: bytes, options: Facts, columns: tuple[list[str], list[str]], meta: object
) -> object:
    if not len(frame):
        return meta
    names, kept = columns
    found = _certify(_load_once(content), frame[names], options)
    return _join(frame[kept], found) if kept else found


def _join(kept: Frame, found: Frame) -> object:
    """What is kept, and the certificates beside it."""
    taken = [name for name in kept.columns if name in found.columns]
    if taken:
        raise ValueError(
            f"The column {taken[0]!r} cannot be kept, because certificates have one of that name: rename it."
        )
    import pandas as pd

    return pd.concat([kept, found], axis=1)


@lru_cache(maxsize=4)
def _load_once(content: bytes) -> Any:
    """The model, read once by each worker, so that what is prepared for it is kept."""
    return load_bytes(content)
