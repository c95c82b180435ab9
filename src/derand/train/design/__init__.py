"""What a model can be, and what a threat can do to it: columns, groups of columns, products, and the way to shapes."""
