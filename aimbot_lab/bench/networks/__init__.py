"""How fast networks with a memory or with encoders train, beside others."""
