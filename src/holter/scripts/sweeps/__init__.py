"""Sweeps: one script run several times, here or on a cluster, each run in a folder of its own."""
