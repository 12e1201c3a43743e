"""The panel: a local web page to watch and steer trainings, to look at replays and sweeps.

`server/` is a Starlette application that reads what runs keep; `page/` holds the files that a
browser gets, plain ES modules without a build step. A part of the page is one module in
`server/parts` and one in `page/parts`; README.md beside this file says how to add one. The command
line starts the server. Starting it loads no numba, torch, MLflow or Optuna: parts that need one
import it when they are asked, in a thread.
"""
