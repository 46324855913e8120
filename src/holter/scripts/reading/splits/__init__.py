"""Training and held-out data: shared rows, statistics of other parts, targets as inputs."""
