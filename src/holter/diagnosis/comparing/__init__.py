"""Several runs compared: two step by step, or groups of them that differ in the seed."""
