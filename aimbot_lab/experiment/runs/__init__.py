"""Runs of a curriculum: planned, started, checkpointed, resumed, described."""
