"""All words of the report: one file per language, each with the same keys (checked by a test)."""
