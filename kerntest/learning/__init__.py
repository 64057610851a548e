"""Learners: fit, predict and transform, and how well a fit predicts."""
