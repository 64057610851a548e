"""Results of tests and learners."""
