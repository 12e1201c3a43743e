"""The newest agent of a run, and how it plays for those who watch."""
