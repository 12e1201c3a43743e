"""The journal of a run: what was logged is on the disk first, and from there sent to the store."""
