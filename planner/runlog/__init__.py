"""Logs of training runs as the frameworks write them: lines, what each tells, and the run that they make."""
