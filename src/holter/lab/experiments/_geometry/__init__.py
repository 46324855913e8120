"""What sharpness and batch-size are made of: curvature, the landscape around, noise, memory."""
