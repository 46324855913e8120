"""Fitting a single batch."""
