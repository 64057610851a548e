"""Tables as rows to learn from and to predict: columns, targets, and what a model keeps of them."""
