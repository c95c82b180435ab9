"""Sums of decision trees over columns that they share: the least sum in a set of rows, by branch and bound."""
