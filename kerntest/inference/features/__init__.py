"""Tests of any number of rows: files are read some rows at a time, and what is held does not grow with them."""
