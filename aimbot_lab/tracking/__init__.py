"""Where numbers, texts and files of a run go: a `Tracker` in front of MLflow.

`open_run` starts a run, `list_runs` and `download_artifact` read them back, `MemoryTracker` is
the one for tests. Imported by experiment and cli. What must stay true: only `mlflow_store`
imports mlflow, and it is imported when first needed; a `log_` call writes to a local journal,
never waits for the store, and never fails because the disk or the store does.
"""
