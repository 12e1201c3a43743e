"""The panel's server: who is let in, messages, the parts, and the processes it starts."""
