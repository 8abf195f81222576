"""Where a batch runs when not on this machine: somebody else's scheduler, the same map."""
