"""Commands about files alone: curricula, sweeps, schemas, maps, target blocks, new projects."""
