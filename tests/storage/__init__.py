"""Tests of derand.storage."""
