"""Who plays the seats that the learner does not: worlds ask, trainings answer."""
