"""What the commands share: flags, configuration, output, tables, progress and errors on a terminal."""
