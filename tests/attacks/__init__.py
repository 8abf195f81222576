"""Hostile inputs by class, a module each: made by code, with the status that each must end in and what must be said.

`ATTACKS` of every module is a list of `Attack`; tests/attacks/test_attacks.py runs them all through `analyze`.
"""
