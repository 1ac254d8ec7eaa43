"""Self-verification: models that were never run are predicted from small ones, then run and compared."""
