"""What the controls are made of: the model called again with other inputs."""
