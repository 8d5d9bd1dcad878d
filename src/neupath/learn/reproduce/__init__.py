"""Experiments: the tables and figures of the paper, made anew, and what its protocol hides."""

from neupath.learn.reproduce.protocol import FULL, QUICK, Preset
from neupath.learn.reproduce.reproduction import Reproduced, reproduce
from neupath.learn.reproduce.runs import PARTS

__all__ = ["FULL", "PARTS", "QUICK", "Preset", "Reproduced", "reproduce"]
