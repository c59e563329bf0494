#!/usr/bin/env python3
"""Runs egglog's own test programs through `l3c egraph run` and compares them with its snapshots.

  bench/engine/egglog_tests.py --data DIR [--l3c PATH] [--timeout SECONDS] [--all] [NAME...]

DIR is a checkout of https://github.com/egraphs-good/egglog; nothing of it is kept here. Each program
of DIR/tests/*.egg (with --all also of its folders web-demo, proofs, pass-typecheck, fail-typecheck)
is run as egglog's tests run it: with a final (print-size), from DIR. Its printed sizes and the costs
of what it extracts must equal the snapshot's; a program without a snapshot must end as it does there
(without an error, or with one in fail-typecheck).
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time


def snapshot_text(data, name, folder):
    stem = re.sub(r"[.\- ]", "_", name)
    suffix = "_fail_typecheck" if folder == "fail-typecheck" else ""
    path = data / "tests" / "snapshots" / f"files__shared_snapshot_{stem}{suffix}.snap"
    if not path.exists():
        return None
    return path.read_text().split("---\n", 2)[2].strip()


def printed_text(lines):
    """What egglog's snapshots keep of the output: sizes, and the costs of extracted terms."""
    text = ""
    for line in lines:
        event = json.loads(line)
        if event["event"] == "size":
            text += f"{next(iter(event['sizes'].values()))}\n"
        elif event["event"] == "sizes":
            text += "(" + "\n ".join(f"({n} {s})" for n, s in event["sizes"].items()) + ")\n"
        elif event["event"] == "extract":
            text += f"(extraction-costs {event['cost']})\n"
    return text.strip()


def first_difference(ours, theirs):
    for a, b in zip(ours.splitlines(), theirs.splitlines()):
        if a != b:
            return f"{a.strip()} instead of {b.strip()}"
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


def judge(data, path, folder, lines, errors, timeout):
    """(passed, word for the table, detail)."""
    if lines is None:
        return False, "timeout", f"more than {timeout} s"
    if not lines or json.loads(lines[-1])["event"] != "done":
        return False, "crash", errors.strip()[-200:]
    ok = json.loads(lines[-1])["ok"]
    if folder == "fail-typecheck":
        return (not ok, "refused" if not ok else "accepted",
                "" if not ok else "an error was expected")
    if not ok:
        return False, "error", errors.strip().splitlines()[-1] if errors.strip() else ""
    theirs = snapshot_text(data, path.stem, folder)
    if theirs is None:
        return True, "ends", "no snapshot to compare with"
    ours = printed_text(lines)
    if ours != theirs:
        return False, "differs", first_difference(ours, theirs)
    return True, "equal", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, help="a checkout of egglog")
    parser.add_argument("--l3c", default="build/bin/l3c")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one program")
    parser.add_argument("--all", action="store_true", help="also the folders below tests/")
    parser.add_argument("names", nargs="*", help="only these programs, without .egg")
    args = parser.parse_args()
    if args.data is None or not (args.data / "tests").is_dir():
        print("SKIPPED: egglog's test programs were not run; give a checkout of egglog as --data DIR")
        return 0
    data = args.data.resolve()
    l3c = str(pathlib.Path(args.l3c).resolve())
    folders = [""]
    if args.all:
        folders += ["web-demo", "proofs", "pass-typecheck", "fail-typecheck"]
    counts = {}
    passed = total = 0
    print(f"{'program':52} {'result':9} {'s':>7}  detail")
    for folder in folders:
        for path in sorted((data / "tests" / folder).glob("*.egg")):
            if args.names and path.stem not in args.names:
                continue
            seconds, lines, errors = run_one(l3c, data, path, args.timeout)
            good, word, detail = judge(data, path, folder, lines, errors, args.timeout)
            name = str(path.relative_to(data / "tests"))
            print(f"{name:52} {word:9} {seconds:7.2f}  {detail}", flush=True)
            counts[word] = counts.get(word, 0) + 1
            passed += good
            total += 1
    summary = ", ".join(f"{n} {word}" for word, n in sorted(counts.items()))
    print(f"\n{passed} of {total} pass ({summary})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
