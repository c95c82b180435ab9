"""Statements over a whole domain, against enumeration."""
