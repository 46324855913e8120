"""What the data checks are made of: samples of data sets, taken apart and compared."""
