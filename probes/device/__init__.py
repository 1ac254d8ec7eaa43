"""The device under test: its properties, its clock, and which of its errors are final."""
