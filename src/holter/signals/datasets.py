"""Data sets looked at directly, sample by sample."""
