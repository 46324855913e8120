"""Parts of the experiment baseline: rows, features, simple models, paired tests."""
