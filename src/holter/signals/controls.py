"""Control experiments: what changes when one thing is changed on purpose."""
