"""What readers ask of a source: its syntax tree, expressions, loops, and origins of values."""
