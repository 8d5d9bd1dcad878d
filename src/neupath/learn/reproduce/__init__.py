"""Reproduction of Neural PathSim: the tables and figures of the paper, and an audit of its protocol.

`protocol` has the presets, and the columns and printed numbers of the tables, `runs` the plan of each part and how
one run is executed, `reproduction` carries out a plan and resumes it, `reports` writes tables and figures.
"""

from neupath.learn.reproduce.protocol import FULL, QUICK, Preset
from neupath.learn.reproduce.reproduction import Reproduced, reproduce
from neupath.learn.reproduce.runs import PARTS

__all__ = ["FULL", "PARTS", "QUICK", "Preset", "Reproduced", "reproduce"]
