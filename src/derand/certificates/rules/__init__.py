"""Rules: how a label, or a number, is found under noise, and what is proven about it."""
