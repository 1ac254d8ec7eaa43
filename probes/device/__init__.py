"""The device under test: what it is, its clock, and which of its errors are final."""
