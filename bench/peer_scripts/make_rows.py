#!/usr/bin/env python3
"""Writes random rows for the L2 file in a folder beside it: `make_rows.py FOLDER`; see job.py."""

import pathlib
import sys

import job
import program

folder = pathlib.Path(sys.argv[1])
job.make_rows(program.read(next(folder.glob("*.l2"))), folder)
