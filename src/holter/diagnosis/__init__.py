"""Diagnosis: from a recorded run to one cause.

What belongs here reads a run and nothing else: it measures nothing, renders nothing, and does not
import torch.

- `facts/`: what rules share about a run, computed once by `Facts(run)`; a new fact goes there.
- `rule`: `@rule`, `@exception`; `rules/`: one rule a file; a new one goes there.
- `damage`, `depth_trend`, `wording`: what several rules say in the same way.
- `causes`: families of symptoms, and which causes explain them.
- `engine`: finds the rules, applies them to a run, and collects a `Checkup`.
- `differential`: the leading cause, what it explains, and what was ruled out.
- `checklist`: the questions of preflight, and the rules that answer them.
"""
