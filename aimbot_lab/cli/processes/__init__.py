"""Processes and terminals: signals, streams, servers, trainings side by side."""
