"""Readers of user files: TOML whose errors name the line, and dated exchange rates."""
