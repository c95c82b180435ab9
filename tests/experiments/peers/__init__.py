"""Tests of the comparison with peers, one file per module."""
