"""The loss around the weights: curvature, noise of gradients."""
