"""The process that measures, kept apart from the one that reports: it may hang or die without losing a line."""
