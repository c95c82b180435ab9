"""Tests of derand.model."""
