"""Tests of derand.kernels.cells."""
