"""Readers of the files that a user writes: TOML with line numbers in errors, and dated exchange rates."""
