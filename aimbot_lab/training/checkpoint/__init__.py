"""The complete state of a training as bytes, from which it resumes exactly."""
