"""Reinforcement learning: returns, bootstrapping, policies, exploration and replay buffers."""
