"""From a recorded run to one cause: facts, rules, causes, outcome, differential, checklist.

Nothing here imports torch.
"""
