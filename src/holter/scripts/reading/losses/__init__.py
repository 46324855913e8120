"""What is minimised: signs, weights, shapes, masks and gradients of losses."""
