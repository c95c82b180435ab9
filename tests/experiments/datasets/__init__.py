"""Tests of the paper's datasets."""
