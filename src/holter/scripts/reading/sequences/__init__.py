"""Sequences: tokens, masks, padding, decoding and their scores."""
