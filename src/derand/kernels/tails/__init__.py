"""Tails: sums of the probabilities of all outcomes on one side of a threshold; backends, and what each way costs."""
