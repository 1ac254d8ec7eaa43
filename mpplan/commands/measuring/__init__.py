"""Commands that measure this machine and manage its records."""
