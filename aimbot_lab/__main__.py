"""`python -m aimbot_lab` is `aimbot-lab`."""

from aimbot_lab.cli.main import main

main()
