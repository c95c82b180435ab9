"""Cells: upper bounds of the probabilities of cells under a noise, and sums of step functions over it."""
