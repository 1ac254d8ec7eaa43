"""The measuring process, separate from the reporting one, so that it may hang or die without losing a line."""
