#!/usr/bin/env python3
"""Times programs in `l3c egraph run` beside egglog from PyPI, in one run.

  bench/engine/peer.py --data DIR --python PYTHON [--l3c PATH] [--runs N] [NAME...]

DIR is a checkout of https://github.com/egraphs-good/egglog, PYTHON an interpreter that has the
package egglog. For l3c the whole process counts, its start included; for egglog reading and running
the program, the start of Python excluded. Runs alternate; medians are printed. One thread each.
"""
import argparse
import pathlib
import statistics
import subprocess
import sys
import time

PEER = """
import sys, time
from egglog import bindings
graph = bindings.EGraph()
text = open(sys.argv[1]).read()
start = time.perf_counter()
graph.run_program(*graph.parse_program(text, sys.argv[1]))
print("seconds", time.perf_counter() - start)
"""

DEFAULT = ["math-microbenchmark", "rectangle", "llama", "paged_llama", "qwen", "qwen3_moe", "whisper",
           "luminal-llama", "cykjson", "eggcc-extraction", "eggcc-2mm", "hardboiled_conv1d_32",
           "hardboiled_conv1d_128", "python_array_optimize"]


def ours(l3c, data, path, timeout):
    start = time.perf_counter()
    try:
        done = subprocess.run([l3c, "egraph", "run", path], cwd=data, capture_output=True,
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, "timeout"
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        return None, done.stderr.decode(errors="replace").strip().splitlines()[-1]
    return seconds, ""


def theirs(python, data, path, timeout):
    try:
        done = subprocess.run([python, "-c", PEER, path], cwd=data, capture_output=True, text=True,
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        return None, "timeout"
    for line in done.stdout.splitlines():
        if line.startswith("seconds "):
            return float(line.split()[1]), ""
    return None, (done.stderr.strip().splitlines() or ["no time printed"])[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--python", help="an interpreter with the package egglog")
    parser.add_argument("--l3c", default="build/bin/l3c")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("names", nargs="*", default=DEFAULT)
    args = parser.parse_args()
    if args.data is None or args.python is None or not (args.data / "tests").is_dir():
        print("SKIPPED: nothing was timed; give --data DIR and --python PYTHON")
        return 0
    data = args.data.resolve()
    l3c = str(pathlib.Path(args.l3c).resolve())
    version = subprocess.run(
        [args.python, "-c", "import importlib.metadata as m; print(m.version('egglog'))"],
        capture_output=True, text=True, check=True).stdout.strip()
    print(f"egglog {version}, medians of {args.runs} runs in seconds")
    print(f"{'program':28} {'l3c':>9} {'egglog':>9} {'ratio':>7}")
    ratios = []
    for name in args.names:
        path = f"tests/{name}.egg"
        a, b, notes = [], [], set()
        for _ in range(args.runs):
            for times, (seconds, note) in ((a, ours(l3c, data, path, args.timeout)),
                                           (b, theirs(args.python, data, path, args.timeout))):
                if seconds is None:
                    notes.add(("l3c: " if times is a else "egglog: ") + note[:100])
                else:
                    times.append(seconds)
            if notes:
                break
        cells = [f"{statistics.median(t):9.4f}" if t else f"{'-':>9}" for t in (a, b)]
        ratio = "      -"
        if a and b and not notes:
            ratios.append(statistics.median(b) / statistics.median(a))
            ratio = f"{ratios[-1]:6.1f}x"
        print(f"{name:28} {cells[0]} {cells[1]} {ratio}  {'; '.join(sorted(notes))}", flush=True)
    if ratios:
        print(f"geometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.1f}x")
    return 0


if __name__ == "__main__":
    sys.exit(main())
