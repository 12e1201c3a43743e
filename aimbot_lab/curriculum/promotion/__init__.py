"""When a lesson is passed: rules, their evidence, and forecasts of how long they take."""
