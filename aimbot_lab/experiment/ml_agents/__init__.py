"""ML-Agents trainer files, converted to curricula."""
