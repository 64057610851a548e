"""How rows are relabelled, and the statistic under every relabelling."""
