"""Attacks on the service, on stores, on saved files and on the readers.

The tests here run each attack briefly. `python benchmarks/attack.py` runs them at length and prints what came of them.
"""
