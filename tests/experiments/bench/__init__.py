"""Tests of the benchmarks, one file per module."""
