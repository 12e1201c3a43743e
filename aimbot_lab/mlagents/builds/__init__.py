"""The trainer's side of the wire: builds are started, spoken to, watched and ended.

`link.Build` is one build; `server` carries its messages by gRPC. What agents observe and do is left
to whoever uses it. A build that ends, hangs or says what can't be read is an error in one line.
"""
