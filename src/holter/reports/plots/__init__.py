"""Pictures, as PNG files: one file each; matplotlib is imported when something is drawn."""
