#!/usr/bin/env python3
"""Records what egglog prints for each program of tests/egraph/egglog_programs, beside it.

  python3 -m venv VENV && VENV/bin/pip install egglog==13.2.0
  VENV/bin/python bench/peer_scripts/egglog_outputs.py

A program whose first line says that it is refused must be an error there too.
"""
import importlib.metadata
import os
import pathlib

from egglog import bindings

PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "egraph" / "egglog_programs"
# What egglog's command line does not print.
SILENT = ("RunScheduleOutput", "OverallStatistics")


def output(path):
    """What is printed until the end or the first error, and whether there was one."""
    graph, printed = bindings.EGraph(), ""
    try:
        for command in graph.parse_program(path.read_text(), path.name):
            for out in graph.run_program(command):
                if type(out).__name__ not in SILENT:
                    printed += str(out)
    except bindings.EggSmolError:
        return printed, True
    return printed, False


def main():
    os.chdir(PROGRAMS)  # where the programs' own files lie
    for path in sorted(PROGRAMS.glob("*.egg")):
        printed, failed = output(path)
        if failed != path.read_text().startswith("; Refused"):
            raise SystemExit(f"{path.name}: {'an error' if failed else 'no error'} in egglog")
        path.with_suffix(".out").write_text(printed)
    print(f"recorded with egglog {importlib.metadata.version('egglog')}")


if __name__ == "__main__":
    main()
