"""What is chosen before or around a fit: folds, penalties, columns, pairs of columns; and how much each counts."""
