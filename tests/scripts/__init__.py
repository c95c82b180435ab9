"""Tests of the scripts that look for faults: a small share of each, and all of it among the long ones."""
