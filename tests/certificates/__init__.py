"""Tests of derand.certificates."""
