"""Bounds on a sum of terms: failure masses under noise, and its worst case within a perturbation."""
