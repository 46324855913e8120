"""Parts of the experiments that repeat a step from the same state and compare bit for bit."""
