"""Pipelines of scikit-learn, read in the columns that they are given: steps, and how functions are folded into them."""
