"""Modules that the workloads train. Importing a module of this folder imports torch."""
