"""Samples on their way to the model: batches, pairing, augmentation, images and windows."""
