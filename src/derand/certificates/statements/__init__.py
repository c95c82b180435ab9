"""Statements over a whole domain: columns that force a row's answer, and promises about every row."""
