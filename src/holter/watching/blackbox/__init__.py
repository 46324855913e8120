"""The black box: the last steps and snapshots of the state, written to disk when something breaks.

`box` decides what is kept and when it is written; `ring` keeps the last steps, `shadow` the
snapshots; `alarms` sees that something broke; `capture` is the format of the files; `memory` says
how much may be kept.
"""
