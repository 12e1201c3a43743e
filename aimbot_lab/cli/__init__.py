"""The command line: each command parses, calls one function, prints.

Results are printed to stdout, progress and messages to stderr. Heavy libraries are imported inside
the commands, so that `aimbot-lab --help` answers at once.
"""
