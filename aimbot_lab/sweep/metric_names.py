"""The names under which a sweep tracks numbers of its own run and of its trials' runs.

Win rates have the names of `foundation.metric_names` there too: `test/win_rate/goto/3`.
"""

TRIAL_VALUE = "trial/value"  # what a trial is worth
TRAINING_VALUE = "training/value"  # what each of its trainings is worth, by their index
BEST_SO_FAR = "best/so_far"  # by trial
BEST_SEARCHED = "best/search"
BEST_CONFIRMED = "best/confirmed"
