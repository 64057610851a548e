"""Bytes, arrays and frames to typed columns, and typed columns to the arrays that a test or a learner takes."""
