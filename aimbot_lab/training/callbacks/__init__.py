"""What happens beside learning: lessons, metrics, the best agent, evaluation, stopping early."""
