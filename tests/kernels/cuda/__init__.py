"""Tests of derand.kernels.cuda."""
