"""How the store of records bears many and large records."""
