"""Where numbers, texts and files of a run go: a `Tracker` in front of MLflow.

`journal_tracker.open_run` starts a run, `history.list_runs` reads them back, `MemoryTracker` is
the one for tests. Only `mlflow_store` imports mlflow, when it is first needed; a `log_` call
writes to a local journal, never waits for the store, and never fails because the disk or the store
does.
"""
