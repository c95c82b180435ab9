"""Checks of the columns of a table. The room is `derand.tables`."""

from derand.tables import check_columns

__all__ = ["check_columns"]
