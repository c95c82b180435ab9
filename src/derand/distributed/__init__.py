"""Tables of parts, on one machine or many: training and certifying by Dask, to the same bits as on one machine.

`fit` trains on a Dask dataframe or on Parquet files, `certify` certifies a Dask dataframe, `certify_files` certifies
files into a folder: a job of `derand.app`, imported on first use. The scheduler is Dask's own, of the extra
`derand[dask]`; processes on one machine that certify files do without.
"""

from derand._core.later import import_later
from derand.distributed._certifying import certify
from derand.distributed._cluster import connect
from derand.distributed._fitting import fit
from derand.distributed._parts import list_files

__all__ = ["certify", "certify_files", "connect", "fit", "list_files"]

__getattr__ = import_later("derand", {"certify_files": "app.jobs"})
