"""The command line: each command parses, calls one function, prints.

Data go to standard output, progress and messages to standard error. Heavy libraries are
imported inside the commands, so that `aimbot-lab --help` answers at once.
"""
