#!/usr/bin/env python3
"""The engine beside egglog from PyPI, in one run: prints the tables of docs/performance.md.

  bench/engine/tables.py --data DIR --python PYTHON [--l3c PATH] [--math-bench PATH]
                         [--rounds N] [--peer-seconds S] [--timeout S] [--only math|programs]
                         [--threads N,N] [NAME...]

DIR is a checkout of https://github.com/egraphs-good/egglog (nothing of it is kept here), PYTHON an
interpreter with the package egglog. What is missing is skipped, loudly. NAMEs are programs of
DIR/tests, without .egg.

Runs alternate between the two, medians are printed. Seconds are of the processor, user and system,
of all threads of the process, where the table says CPU; on a machine that others use they say more
than those of the wall clock. For l3c the whole process counts, its start and reading included; for
egglog only running the program that was read, the start of Python and reading excluded. Memory is
the peak of the process, with egglog's Python (about 35 MB) in it. A program is not repeated any more
once egglog has taken --peer-seconds for it.
"""
import argparse
import datetime
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Prints one line for each stretch: its name, wall seconds, processor seconds.
PEER = """
import resource, sys, time
from egglog import bindings

def now():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), usage.ru_utime + usage.ru_stime

graph = bindings.EGraph()
for number, path in enumerate(sys.argv[1:]):
    commands = graph.parse_program(open(path).read(), path)
    start = now()
    graph.run_program(*commands)
    end = now()
    print("stretch", number, end[0] - start[0], end[1] - start[1])
"""

PROGRAMS = ["hardboiled_conv1d_32", "hardboiled_conv1d_128", "luminal-llama",
            "python_array_optimize", "cykjson", "eggcc-extraction", "rectangle", "llama", "qwen",
            "qwen3_moe", "whisper"]
STEPS = 11


class Run:
    """A finished child: its output, or why there is none, and what it took."""

    def __init__(self, command, timeout, **options):
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 **options)
        output = []
        readers = [threading.Thread(target=lambda s=s: output.append((s, s.read())))
                   for s in (child.stdout, child.stderr)]
        for reader in readers:
            reader.start()
        stopped = []
        timer = threading.Timer(timeout, lambda: (stopped.append(True), child.kill()))
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        for reader in readers:
            reader.join()
        text = dict(output)
        self.wall = time.perf_counter() - start
        self.cpu = usage.ru_utime + usage.ru_stime
        self.bytes = usage.ru_maxrss * 1024
        self.output = text[child.stdout]
        self.problem = ""
        if stopped:
            self.problem = f"more than {timeout:g} s"
        elif child.returncode != 0:
            self.problem = (text[child.stderr].strip().splitlines() or ["no message"])[-1][:120]

    def stretches(self):
        """(wall, processor) seconds of each stretch of a peer's run."""
        return [tuple(map(float, line.split()[2:])) for line in self.output.splitlines()
                if line.startswith("stretch ")]


def peer_command(python, *paths):
    return [python, "-c", PEER, *map(str, paths)]


def machine():
    model = "unknown processor"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{os.cpu_count()} cores of {model}, {platform.system()} {platform.machine()}"


def load():
    return f"{os.getloadavg()[0]:.1f}"


def milliseconds(seconds):
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:,.0f}"


# --- math-microbenchmark

def math_stretches(data, folder):
    """The program up to its run, then one step at a time."""
    text = (data / "tests" / "math-microbenchmark.egg").read_text()
    start = "\n".join(line for line in text.splitlines()
                      if not re.match(r"\((run|print|query|check)\b", line.strip()))
    paths = [folder / "start.egg"] + [folder / "step.egg"] * STEPS
    paths[0].write_text(start)
    paths[1].write_text("(run 1)\n")
    return paths


def read_math_bench(run):
    """({step: (wall, processor) in seconds}, {label: text of the other lines})."""
    steps, others = {}, {}
    for line in run.output.splitlines():
        row = re.match(r"\s*(\d+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s*$", line)
        if row:
            steps[int(row[1])] = (float(row[3]) / 1e3, float(row[4]) / 1e3)
            others.setdefault("nodes", {})[int(row[1])] = int(row[2])
        label = re.match(r"(an empty e-graph|language and 24 rules|insert 35, rebuild|steps 1 to 5|"
                         r"\s+of it planning|bytes per e-node):?\s+(.*)$", line)
        if label:
            others[label[1].strip()] = label[2].strip()
    return steps, others


def math_table(args, folder):
    binary = pathlib.Path(args.math_bench)
    if not binary.exists():
        print(f"SKIPPED: math-microbenchmark: there is no {binary}; build the target math_bench\n")
        return
    paths = math_stretches(args.data, folder) if args.data else None
    threads = [int(t) for t in args.threads.split(",")]
    ours = {t: {} for t in threads}
    peer, others = {}, {}
    problems = set()
    for _ in range(args.rounds):
        for t in threads:
            run = Run([str(binary), "--threads", str(t), "--repeat", "1"], args.timeout)
            if run.problem:
                problems.add(f"math_bench --threads {t}: {run.problem}")
                continue
            steps, lines = read_math_bench(run)
            others.setdefault(t, []).append(lines)
            for step, times in steps.items():
                ours[t].setdefault(step, []).append(times)
        if paths and args.python:
            run = Run(peer_command(args.python, *paths), args.timeout)
            if run.problem:
                problems.add(f"egglog: {run.problem}")
                continue
            for step, times in enumerate(run.stretches()):
                if step > 0:
                    peer.setdefault(step, []).append(times)
    print("### math-microbenchmark\n")
    print(f"Milliseconds a step, CPU and wall; medians of {args.rounds} rounds in turns.\n")
    heads = [f"{t} thread{'s' if t > 1 else ''}, CPU | wall" for t in threads]
    print(f"| step | e-nodes | {' | '.join(heads)} | egglog, CPU | wall | "
          f"{' | '.join(f'egglog / l3c, {t}' for t in threads)} |")
    print("|---" * (4 + 3 * len(threads)) + "|")

    def median(times, which):
        return statistics.median(t[which] for t in times)

    nodes = next((lines[0]["nodes"] for lines in others.values() if lines), {})
    for step in range(1, STEPS + 1):
        cells = [str(step), f"{nodes.get(step, 0):,}"]
        for t in threads:
            times = ours[t].get(step)
            cells += [milliseconds(median(times, w)) for w in (1, 0)] if times else ["–", "–"]
        times = peer.get(step)
        cells += [milliseconds(median(times, w)) for w in (1, 0)] if times else ["–", "–"]
        for t in threads:
            # The peer has one thread: two of ours are measured by the clock they both see.
            which = 1 if t == 1 else 0
            both = times and ours[t].get(step)
            cells.append(f"{median(times, which) / max(median(ours[t][step], which), 1e-9):.1f}"
                         if both else "–")
        print("| " + " | ".join(cells) + " |")
    print()
    for label in ("an empty e-graph", "language and 24 rules", "insert 35, rebuild",
                  "steps 1 to 5", "of it planning", "bytes per e-node"):
        texts = [lines[label] for t in threads[:1] for lines in others.get(t, []) if label in lines]
        if texts:
            print(f"- {label}: {sorted(texts)[len(texts) // 2]}")
    for problem in sorted(problems):
        print(f"- PROBLEM: {problem}")
    if not peer:
        print("- SKIPPED: egglog's side; give --data DIR and --python PYTHON")
    print(flush=True)


# --- the bench programs

def programs_table(args):
    l3c = pathlib.Path(args.l3c)
    if args.data is None or args.python is None or not l3c.exists():
        print("SKIPPED: egglog's bench programs were not run; give a checkout of egglog as --data DIR,"
              " an interpreter with egglog as --python PYTHON, and the binary as --l3c PATH\n")
        return
    print("### egglog's bench programs\n")
    print("CPU seconds and peak memory; the ratios are of medians.\n")
    print("| program | rounds | l3c | egglog | egglog / l3c | l3c MB | egglog MB | l3c / egglog | |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    faster, smaller = [], []
    for name in args.names or PROGRAMS:
        path = args.data / "tests" / f"{name}.egg"
        if not path.exists():
            print(f"| {name} | | | | | | | | SKIPPED: there is no {path.name} |", flush=True)
            continue
        ours, theirs, problems = [], [], set()
        spent = 0.0
        while len(ours) < args.rounds and spent < args.peer_seconds and not problems:
            run = Run([str(l3c), "egraph", "run", "--threads", args.threads.split(",")[0],
                       str(path)], args.timeout, cwd=args.data)
            if run.problem:
                problems.add(f"l3c: {run.problem}")
            else:
                ours.append((run.cpu, run.bytes))
            run = Run(peer_command(args.python, path), args.timeout, cwd=args.data)
            spent += run.wall
            if run.problem:
                problems.add(f"egglog: {run.problem}")
            else:
                theirs.append((run.stretches()[0][1], run.bytes))
        row = [name, str(len(ours))]
        medians = [[statistics.median(v) for v in zip(*runs)] if runs else None
                   for runs in (ours, theirs)]
        for which, format_value in ((0, lambda v: f"{v:.3f}"), (1, lambda v: f"{v / 1e6:,.0f}")):
            row += [format_value(m[which]) if m else "–" for m in medians]
            if all(medians):
                ratio = medians[1][0] / medians[0][0] if which == 0 else medians[0][1] / medians[1][1]
                (faster if which == 0 else smaller).append(ratio)
                row.append(f"{ratio:.1f}" if which == 0 else f"{ratio:.2f}")
            else:
                row.append("–")
        print("| " + " | ".join(row + ["; ".join(sorted(problems))]) + " |", flush=True)
    if faster:
        print(f"\nGeometric means of {len(faster)}: {statistics.geometric_mean(faster):.1f} times as"
              f" fast, {statistics.geometric_mean(smaller):.2f} of the memory; slower than egglog:"
              f" {sum(r < 1 for r in faster)}.")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--python")
    parser.add_argument("--l3c", default=str(ROOT / "build/release/bin/l3c"))
    parser.add_argument("--math-bench", default=str(ROOT / "build/release/bin/math_bench"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer-seconds", type=float, default=60)
    parser.add_argument("--timeout", type=float, default=600)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--only", choices=["math", "programs"])
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.data is not None:
        args.data = args.data.resolve()
        if not (args.data / "tests").is_dir():
            print(f"SKIPPED: {args.data} is no checkout of egglog\n")
            args.data = None
    version = "none"
    if args.python:
        asked = subprocess.run(
            [args.python, "-c", "import importlib.metadata as m; print(m.version('egglog'))"],
            capture_output=True, text=True)
        if asked.returncode == 0:
            version = asked.stdout.strip()
        else:
            print(f"SKIPPED: {args.python} has no package egglog\n")
            args.python = None
    print(f"{datetime.date.today()}, {machine()}, load {load()} at the start; egglog {version} from"
          " PyPI\n", flush=True)
    if args.only != "programs":
        with tempfile.TemporaryDirectory() as folder:
            math_table(args, pathlib.Path(folder))
    if args.only != "math":
        programs_table(args)
    print(f"load {load()} at the end")
    return 0


if __name__ == "__main__":
    sys.exit(main())
