"""Tests of the baselines, one file per module."""
