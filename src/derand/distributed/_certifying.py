"""Certifying Dask dataframes, partition by partition.

Owns how the model travels and what the result looks like before it is computed. Must not know how rows are certified.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from derand.storage import load_bytes, write_bytes


def certify(estimator: Any, data: Any, **asked: Any) -> Any:
    """Certify every partition of a Dask dataframe; nothing is computed before its result is asked for.

    Parameters
    ----------
    estimator : fitted classifier
        Trained by `fit` of this package or by its own. It travels to each worker once.
    data : Dask dataframe
        Columns that the model does not read are left out.
    **asked
        As for `certify` of the classifier: `l0`, `threat`, `rule`, `proof`, `noise`, ... One thread is used per
        partition: Dask works on as many at a time as there are cores.

    Returns
    -------
    Dask dataframe
        With the index of `data`: label, failure, radius or verdict, and proof, as `Certificates.to_frame` has them.
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
    missing = [name for name in names if name not in data.columns]
    if missing:
        raise ValueError(f"`data` has no column {missing[0]!r}: the model was trained with {', '.join(names[:8])} ...")
    options = {"n_jobs": 1, **asked}
    meta = _make_meta(estimator, options)
    content = dask.delayed(write_bytes(estimator), traverse=False)
    return data[names].map_partitions(_certify_part, content, options, meta, meta=meta)


def _make_meta(estimator: Any, options: dict[str, Any]) -> Any:
    """The result of no rows."""
    row = estimator.decode_rows(np.zeros((1, estimator.encoding_.n_features)))
    return estimator.certify(row, **options).to_frame().iloc[:0]


def _certify_part(frame: Any, content: bytes, options: dict[str, Any], meta: Any) -> Any:
    if not len(frame):
        return meta
    return _load_once(content).certify(frame, **options).to_frame()


@lru_cache(maxsize=4)
def _load_once(content: bytes) -> Any:
    """The model, read once by each worker, so that what is prepared for it is kept."""
    return load_bytes(content)
