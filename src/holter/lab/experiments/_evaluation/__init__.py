"""Parts of the experiment `evaluate`."""
