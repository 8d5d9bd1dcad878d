"""Experiments: the tables and figures of the paper, made anew, and what its protocol hides."""

from neupath.experiments.parts import PARTS
from neupath.experiments.reproduction import Reproduced, reproduce
from neupath.experiments.scales import FULL, QUICK, Scale

__all__ = ["FULL", "PARTS", "QUICK", "Reproduced", "Scale", "reproduce"]
