"""Rows of a world that go on in real time on the page: who acts, what is seen, what is recorded."""
