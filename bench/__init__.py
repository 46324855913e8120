"""Figures: what holter costs, and how often it is right."""
