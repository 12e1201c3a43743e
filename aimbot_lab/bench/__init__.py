"""Benchmarks, a module for each command of `aimbot-lab bench`.

`sim` (steps per second of the worlds), `train` (trainings against stable-baselines3), `ablation`
(what each option brings), `rules` (error rates of promotion), `evaluation`, `replays` and
`panel.watching` (what these cost a training), `peer` (wall time to the same proof), `ratings` (how
often the league's intervals hold), `bridge` (ML-Agents' calls, through the wire and in process).

Every figure is the best of several short repeats, since whatever else a machine does can only
slow a repeat down.
"""
