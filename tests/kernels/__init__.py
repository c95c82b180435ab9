"""Tests of derand.kernels."""
