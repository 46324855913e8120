"""holter on a GPU: small training scripts with known truth, run bare and under `holter run`."""
