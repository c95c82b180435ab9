"""Training as functions with frozen results: tables and a noise in, models out. Must not know scikit-learn."""
