"""Sweeps: Optuna looks for the values that win most, with trials that can be repeated.

The only home of Optuna; imported by cli, panel and cluster. What must stay true: what a trial is
given and what it is worth depends on the sweep's file, its seed and the trial's number alone, never
on timing, the number of workers or which of them died. Every trial ends once. `load_sweep` creates
nothing.
"""
