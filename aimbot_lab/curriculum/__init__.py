"""Lessons and how they end: mixes, the order in which episodes count, the test of promotion.

Pure: no files, no torch, no tracking, no world; what a world offers (targets, numbers of
difficulties) is passed in.
"""
