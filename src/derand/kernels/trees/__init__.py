"""Sums of decision trees over columns that they share: arrays in, arrays out."""
