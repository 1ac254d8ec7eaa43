"""How the store of records scales to many and large records."""
