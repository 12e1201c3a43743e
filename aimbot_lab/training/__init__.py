"""Learning: policies, algorithms and callbacks on torch and stable-baselines3.

Imported by experiment. Must stay free of files, YAML and MLflow.
"""

import os

# torch's threads spin while they wait for each other. Where anything else wants a core, the one
# that waits then takes it from the one that works: measured, a training beside one busy process
# on two cores ran ten times slower. Read by OpenMP when torch is loaded; a user's setting stays.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
