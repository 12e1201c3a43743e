"""What a sweep found: its report, note, charts, best values, gains and power."""
