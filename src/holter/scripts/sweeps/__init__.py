"""Tasks for several processes or machines, and sweeps: one script with several seeds."""
