"""The data types and the arithmetic of plans, which need only numpy, the standard library and the shipped rows."""
