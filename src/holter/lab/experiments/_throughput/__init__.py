"""Parts of the throughput experiment."""
