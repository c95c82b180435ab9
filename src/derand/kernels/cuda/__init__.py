"""The GPU: cells, tails and worst cases on a CUDA device; `backend` is the module that others load."""
