"""Cures of a script: the unmodified script runs again, each time under one change."""
