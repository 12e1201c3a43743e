"""Messages between ML-Agents' trainers and builds, as bytes.

`schema` declares all of them for protobuf, which reads and writes what is sent once. What is sent
in every step, agents' infos and actions, is read and written with NumPy. Names are not on the wire;
numbers and types are facts of ML-Agents' protocol 1.5.0.
"""
