"""Many tests of independence over the columns of one table."""
