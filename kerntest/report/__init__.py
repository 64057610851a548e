"""Results: records, and how they are written and told."""
