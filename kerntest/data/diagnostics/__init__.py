"""What in the data would make a test mislead."""
