"""The listeners: each turns what some of the taps and hooks tell into steps and moments."""
