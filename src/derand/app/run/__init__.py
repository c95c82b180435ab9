"""`derand.toml`: what it says, its steps one after the other, and the first one of a table.

Its public functions are jobs, which `derand.app.jobs` exports.
"""
