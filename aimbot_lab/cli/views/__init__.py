"""What a person sees: live views of trainings and sweeps, tables, texts."""
