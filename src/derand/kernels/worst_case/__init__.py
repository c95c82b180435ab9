"""Worst cases: lower bounds of an expected score, or of a sum of scores, over all points within a threat."""
