"""Training as functions with frozen results: arrays and a noise in, models out. Must not know scikit-learn or frames."""
