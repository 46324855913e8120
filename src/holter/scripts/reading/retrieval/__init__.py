"""Embeddings and rankings: contrastive losses, views, triplets, negatives and ranks."""
