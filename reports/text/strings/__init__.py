"""All words of the report: one file per language, each with the same keys (a test holds them to it)."""
