"""The check on ourselves: models that were not run are predicted from small ones, then run, then compared."""
