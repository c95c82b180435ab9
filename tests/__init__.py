"""Tests of derand; a package so that tests can share the oracle and the strategies."""
