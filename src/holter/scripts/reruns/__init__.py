"""Reruns: the script itself runs again up to its failure, is compared, traced and changed."""
