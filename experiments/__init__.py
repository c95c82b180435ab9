"""Experiments with derand: the paper's tables and datasets, benchmarks, and what derand is compared with.

Not part of the wheel: run it from the root of the repository, `python -m experiments --help`. May import the public
names of every room of derand; derand must not know it.
"""
