"""What experiments measured, for the text report: one file each."""
