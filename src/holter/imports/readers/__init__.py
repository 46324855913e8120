"""Readers of logs, one kind a file.

Each has `KIND` for people, `FILES` (patterns of names in a folder), `recognises(head)` and
`read(path, log)`.
"""
