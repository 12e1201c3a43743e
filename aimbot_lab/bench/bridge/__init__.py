"""`aimbot-lab bench bridge`: what the bridge to ML-Agents costs, by gRPC and in process."""
