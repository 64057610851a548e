"""Kernels: similarity functions of two rows, their algebra and their texts. Importing this package loads nothing."""
