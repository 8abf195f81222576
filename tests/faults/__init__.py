"""Faults at every step of a write: a full disk, a broken one, a signal, a kill; what is left is old or new, whole."""
