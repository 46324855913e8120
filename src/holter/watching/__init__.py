"""Watching: a live training becomes a run, at next to no cost and without changing it.

What belongs here runs inside the user's training. It measures and concludes nothing; it never waits
for a device, and none of its exceptions reaches the training.

- `taps/`: reversible taps on torch's entry points, one file per thing that is tapped.
- `listening/`, `evaluating`: what taps and hooks report, turned into transitions and moments.
- `steps`, `stepping`, `loop`: the open step as a state machine, its end, and what listeners share.
- `shield`, `budget`: the guard against exceptions, the cost, and how deep to read a step.
- `collectors/`: one collector a file; a new one goes there. `publishing` tells them of moments.
- `stats/`: statistics of many tensors in one pass, left on their device.
- `recorder`: readings of a step become records of a run.
- `blackbox/`: the last steps and snapshots of the state, written when something breaks.
- `loaders`, `loss_scale`, `schedules`: what is known of loaders, AMP scales and schedulers.
- `watch`: `holter.watch` and the `Watch` it returns.
"""
