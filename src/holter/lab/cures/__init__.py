"""Cures: a training repeated under one change at a time, to find what restores learning."""
