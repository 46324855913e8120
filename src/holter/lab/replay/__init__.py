"""Replay: a captured failure, run again to find its cause and what cures it."""
