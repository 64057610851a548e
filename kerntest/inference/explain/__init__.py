"""What a test saw: columns that differ, typical rows, witness functions, and pictures of all that."""
