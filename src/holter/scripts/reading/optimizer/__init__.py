"""Updates of the weights: gradients, accumulation, parameters, schedules and averages."""
