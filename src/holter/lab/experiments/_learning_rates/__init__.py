"""Parts of lr-range: sweeps and short trainings, and which learning rates to try next."""
