"""Self-verification: steps that were never run are predicted from small ones, then run and compared."""
