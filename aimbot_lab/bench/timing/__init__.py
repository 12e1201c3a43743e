"""How benchmarks take times: worlds in full play, stopwatches, fresh processes, the machine."""
