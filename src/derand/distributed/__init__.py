"""Tables of parts, on one machine or many: training and certifying by Dask, to the same bits as on one machine.

`fit` trains on a Dask dataframe or on Parquet files, `certify` certifies a Dask dataframe, `certify_files` certifies
files into a folder. The scheduler is Dask's own, of the extra `derand[dask]`; processes on one machine that certify
files do without.
"""

from derand.distributed._certifying import certify
from derand.distributed._cluster import connect
from derand.distributed._files import FilesSummary, certify_files
from derand.distributed._fitting import fit

__all__ = ["FilesSummary", "certify", "certify_files", "connect", "fit"]
