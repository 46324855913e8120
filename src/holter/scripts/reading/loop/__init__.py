"""The training loop: modes, best scores, totals, checkpoints, seeds, and parts without a use."""
