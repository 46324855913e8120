"""What lr-range is made of: rates of all groups, and short trainings at them."""
