"""Tests of the experiments, a folder per room."""
