"""Tests of derand.kernels.tails."""
