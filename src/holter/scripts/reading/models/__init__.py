"""What is inside a model: layers, axes, states, attention and normalisation."""
