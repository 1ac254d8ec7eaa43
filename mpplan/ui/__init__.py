"""Shared parts of the commands: flags, configuration, output, tables, progress, and errors on a terminal."""
