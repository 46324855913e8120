"""A user's script: how it is run, watched, and recognised as a setup for experiments."""
