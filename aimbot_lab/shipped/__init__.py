"""What comes with the package beside its code: curricula, sweeps, a project to begin with.

`curricula` and `sweeps` are links to the folders of these names at the top of the repository, so
that a wheel holds their files. Imports foundation only.
"""
