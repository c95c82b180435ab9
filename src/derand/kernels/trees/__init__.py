"""Trees: arrays in, arrays out."""
