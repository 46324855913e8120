"""Models that generate: adversarial, variational, flows and diffusion."""
