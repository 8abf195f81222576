"""Many runs: find them, analyse each with the same pipe, say which died of what, and which fix would save most."""
