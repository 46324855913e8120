"""The fault corpus: workloads, the mistakes people make in them, and healthy runs that look odd."""
