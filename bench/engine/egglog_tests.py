#!/usr/bin/env python3
"""Runs egglog's own test programs through `l3c egraph run` and compares them with its snapshots.

  bench/engine/egglog_tests.py --data DIR [--l3c PATH] [--timeout SECONDS] [--python PYTHON] [NAME...]

DIR is a checkout of https://github.com/egraphs-good/egglog; nothing of it is kept here. Every program
of DIR/tests and the folders below is run as egglog's tests run it: with a final (print-size), from
DIR. What it prints of sizes must be the snapshot's text byte for byte, and so must the costs of what
it extracts; a program without a snapshot must end as it does there: without an error, or with one
in fail-typecheck, where the line of the error must be the snapshot's as well. The exit code is 1
when fewer than nine in ten pass, or none was run.

With --python, an interpreter that has the package egglog, each program also runs there, and all that
the two print is compared: terms, variants, functions and sizes.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

PEER = """
import sys
from egglog import bindings
graph = bindings.EGraph()
text = open(sys.argv[1]).read()
for output in graph.run_program(*graph.parse_program(text, sys.argv[1])):
    if type(output).__name__ not in ("RunScheduleOutput", "OverallStatistics"):
        sys.stdout.write(str(output))
"""


def must_fail(path):
    return path.parent.name == "fail-typecheck"


def snapshot_text(data, path):
    stem = re.sub(r"[.\- ]", "_", path.stem)
    name = f"files__fail-typecheck__{stem}" if must_fail(path) else f"files__shared_snapshot_{stem}"
    snapshot = data / "tests" / "snapshots" / f"{name}.snap"
    if not snapshot.exists():
        return None
    return snapshot.read_text().split("---\n", 2)[2].strip()


def printed_text(lines):
    """What egglog's snapshots keep of the output: sizes, and the costs of extracted terms."""
    text = ""
    for line in lines:
        event = json.loads(line)
        if event["event"] in ("size", "sizes"):
            text += event["text"]
        elif event["event"] == "extract":
            text += f"(extraction-costs {event['cost']})\n"
    return text.strip()


def first_difference(ours, theirs):
    for a, b in zip(ours.splitlines(), theirs.splitlines()):
        if a != b:
            return f"{a.strip()[:60]} instead of {b.strip()[:60]}"
    return f"{len(ours.splitlines())} lines instead of {len(theirs.splitlines())}"


def run_one(l3c, data, path, timeout):
    """(seconds, lines of JSON or None on a timeout, standard error)."""
    with tempfile.NamedTemporaryFile("w", suffix=".egg") as program:
        program.write(path.read_text() + "\n(print-size)")
        program.flush()
        start = time.perf_counter()
        try:
            done = subprocess.run([l3c, "egraph", "run", "--json", program.name], cwd=data,
                                  capture_output=True, text=True, timeout=timeout)
        except subprocess.TimeoutExpired:
            return time.perf_counter() - start, None, ""
        seconds = time.perf_counter() - start
        return seconds, done.stdout.splitlines(), done.stderr.replace(program.name, path.name)


def judge(data, path, lines, errors, timeout):
    """(passed, word for the table, detail)."""
    if lines is None:
        return False, "timeout", f"more than {timeout} s"
    if not lines or json.loads(lines[-1])["event"] != "done":
        return False, "crash", errors.strip()[-200:]
    ok = json.loads(lines[-1])["ok"]
    theirs = snapshot_text(data, path)
    report = re.search(r"^.*:\d+:\d+: error\[[a-z-]+\]: .*$", errors, re.MULTILINE)
    message = report.group(0) if report else (errors.strip().splitlines() or [""])[-1]
    if must_fail(path):
        if ok:
            return False, "accepted", "an error was expected"
        line = re.search(r":(\d+):\d+: error\[", message)
        if line is None:
            return False, "crash", message[:200]
        place = re.search(r"In (\d+):", theirs or "")
        if place is not None and place.group(1) != line.group(1):
            return False, "elsewhere", (f"in line {line.group(1)}, there in line {place.group(1)}: "
                                        f"{message[:120]}")
        return True, "refused", ""
    if not ok:
        return False, "error", message
    if theirs is None:
        return True, "ends", "no snapshot to compare with"
    ours = printed_text(lines)
    if ours == theirs:
        return True, "equal", ""
    # Proofs are printed in another form; the sizes follow them.
    if '"event":"proof"' in "".join(lines) and theirs.endswith("\n" + ours):
        return True, "equal", "but for the text of a proof"
    return False, "differs", first_difference(ours, theirs)


def compare_output(l3c, python, data, path, timeout):
    """What l3c and the package print for the program: "" where it is the same, else the difference."""
    program = str(path.relative_to(data))
    try:
        theirs = subprocess.run([python, "-c", PEER, program], cwd=data, capture_output=True, text=True,
                                timeout=timeout)
        ours = subprocess.run([l3c, "egraph", "run", program], cwd=data, capture_output=True, text=True,
                              timeout=timeout)
    except subprocess.TimeoutExpired:
        return "timeout"
    if theirs.returncode != 0:
        return "the package refuses it: " + (theirs.stderr.strip().splitlines() or [""])[-1][:80]
    if ours.returncode != 0:
        return "l3c refuses it"
    return "" if ours.stdout == theirs.stdout else first_difference(ours.stdout, theirs.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, help="a checkout of egglog")
    parser.add_argument("--l3c", default="build/release/bin/l3c")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one program")
    parser.add_argument("--python", help="an interpreter with the package egglog")
    parser.add_argument("names", nargs="*", help="only these programs, without .egg")
    args = parser.parse_args()
    if args.data is None or not (args.data / "tests").is_dir():
        print("SKIPPED: egglog's test programs were not run; give a checkout of egglog as --data DIR")
        return 0
    data = args.data.resolve()
    l3c = str(pathlib.Path(args.l3c).resolve())
    counts = {}
    passed = total = same_output = compared = 0
    print(f"{'program':52} {'result':9} {'s':>7}  detail")
    for path in sorted((data / "tests").rglob("*.egg")):
        if args.names and path.stem not in args.names:
            continue
        seconds, lines, errors = run_one(l3c, data, path, args.timeout)
        good, word, detail = judge(data, path, lines, errors, args.timeout)
        if args.python and not must_fail(path):
            difference = compare_output(l3c, args.python, data, path, args.timeout)
            compared += 1
            same_output += difference == ""
            if difference:
                detail += f" [printed: {difference}]"
        name = str(path.relative_to(data / "tests"))
        print(f"{name:52} {word:9} {seconds:7.2f}  {detail}", flush=True)
        counts[word] = counts.get(word, 0) + 1
        passed += good
        total += 1
    summary = ", ".join(f"{n} {word}" for word, n in sorted(counts.items()))
    print(f"\n{passed} of {total} pass ({summary})")
    if compared:
        print(f"{same_output} of {compared} print the same text as the package")
    return 0 if total != 0 and passed * 10 >= total * 9 else 1


if __name__ == "__main__":
    sys.exit(main())
