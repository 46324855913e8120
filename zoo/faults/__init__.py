"""Mistakes, by the workload they were made in: each module lists its SPECIMENS."""
