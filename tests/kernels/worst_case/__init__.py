"""Tests of derand.kernels.worst_case."""
