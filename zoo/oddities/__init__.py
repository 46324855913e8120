"""Sound runs that look odd, by the workload: each module lists its SPECIMENS."""
