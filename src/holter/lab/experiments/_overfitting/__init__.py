"""What overfit-batch is made of: samples, the floor of their loss, fits, what a trial changes."""
