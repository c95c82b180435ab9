"""Tests of the paper's tables, one file per module."""
