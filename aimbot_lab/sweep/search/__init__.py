"""What is searched and how: the space, suggestions, pruning, and the measures of a trial."""
