"""One training in several processes: their shards, sums and launcher.

The number of processes changes no bit of the result: sums are added in the order of one tree over
the shards, wherever these are. Free of networks and algorithms; the supervisor, which starts the
processes, loads no torch.
"""
