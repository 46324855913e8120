"""Parts of overfit-batch: the samples, the floor of their loss, the trials, their planning."""
