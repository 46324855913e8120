"""Autograd graphs: what a loss is made of, read from its graph before backward frees it."""
