"""Reports on several runs: a comparison of two, and a sweep over seeds."""
