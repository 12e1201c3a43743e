"""Halls of the duel as data: `layouts.yaml`, how it is read, and what every layout must obey."""
