"""The measuring process, separate from the reporting one: it may hang or die without losing a line."""
