"""What other tools say of the zoo's runs: each peer's alarms, and what they mean in our words."""
