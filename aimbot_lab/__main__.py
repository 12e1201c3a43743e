"""`python -m aimbot_lab` is `aimbot-lab`."""

from aimbot_lab.entry import main

main()
