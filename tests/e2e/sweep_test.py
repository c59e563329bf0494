#!/usr/bin/env python3
"""l3c sweep: grids, what is kept of them, and which differences are noise."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree

from harness import L3C, ROOT, L3cTest

sys.path.insert(0, str(ROOT / "bench/peer_scripts"))

import workloads  # noqa: E402

SMALL = ROOT / "bench/workloads/softmax.l2"


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def grid(fields, files=(SMALL,)):
    named = ", ".join(f'"{file}"' for file in files)
    return f"# l3c grid v1\n\ngrid g {{\n    workloads: [{named}]\n{fields}\n}}\n"


def points(times, **figures):
    """A file of results with one point a list of times."""
    first = {"event": "sweep", "version": 1, "grid": "g", "build": "b", "machine": "m"}
    rows = [{"event": "point", "point": str(i), "workload": f"w{i}", "settings": {"search": "egraph"},
             "repeats": len(t), "figures": {"step_ms": {"median": 0, "low": 0, "high": 0, "samples": t}} | figures}
            for i, t in enumerate(times)]
    return "".join(json.dumps(row) + "\n" for row in [first, *rows])


class Sweep(L3cTest):
    def sweep(self, text, *args, **kwargs):
        return self.l3c("sweep", self.write("g.grid", text), "-o", self.dir / "out", *args, **kwargs)

    def test_figures_are_those_of_the_commands(self):
        text = grid("    search: [greedy, egraph]\n    shapes: [given, (512: 64)]\n"
                    "    measure: optimise(repeats: 2)")
        events = self.sweep(text, "--json").events()
        samples = [e for e in events if e["event"] == "sample"]
        found = [e for e in events if e["event"] == "point"]
        self.assertEqual(len(samples), 8)
        self.assertEqual([s["done"] for s in samples], list(range(1, 9)))
        self.assertEqual(samples[-1]["left_seconds"], 0)
        self.assertEqual((events[-1]["event"], events[-1]["points"], events[-1]["failed"]), ("done", 4, 0))
        self.assertEqual(lines(self.dir / "out/results.jsonl")[1:], found)
        by = {(p["settings"]["search"], p["settings"]["shapes"]): p for p in found}
        by_hand = self.write("hand.l2", SMALL.read_text().replace("512", "64"))
        for shape, file in (("given", SMALL), ("512→64", by_hand)):
            plan = [e for e in self.l3c("optimize", file, "--synthetic", "--json").events()]
            step = next(e for e in plan if e["event"] == "plan" and e["split"] == "train")
            cost = next(e for e in plan if e["event"] == "cost")
            figures = by["egraph", shape]["figures"]
            self.assertEqual((figures["kernels"], figures["bytes_moved"]), (step["kernels"], step["bytes_moved"]))
            self.assertEqual(figures["predicted_s"], cost["step_time"])
            self.assertEqual(len(figures["optimise_s"]["samples"]), 2)
        for plot in events[-1]["plots"]:
            xml.etree.ElementTree.parse(plot)
        # Once measured, nothing is measured again; more repeats go on.
        again = self.sweep(text, "--json")
        self.assertEqual([e for e in again.events() if e["event"] == "sample"], [])
        more = self.sweep(text, "--json", "--repeats", 3, "--where", "search=egraph").events()
        self.assertEqual(len([e for e in more if e["event"] == "sample"]), 2)
        table = self.sweep(text).out
        self.assertIn("| workload | search | shapes ", table)
        self.assertIn("4 points, 0 failed", table)

    def test_killed_it_goes_on(self):
        text = grid("    search: [off, greedy, egraph]\n    measure: optimise(repeats: 5)")
        file = self.write("g.grid", text)
        log = self.dir / "out/samples.jsonl"
        for how in (signal.SIGKILL, signal.SIGINT):
            before = len(log.read_text().splitlines()) if log.exists() else 0
            process = subprocess.Popen([L3C, "sweep", file, "-o", self.dir / "out", "--workers", "1"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            deadline = time.time() + 60
            while time.time() < deadline and (not log.exists() or len(log.read_text().splitlines()) < before + 2):
                time.sleep(0.002)
            process.send_signal(how)
            said = process.communicate(timeout=60)[1]
            if how == signal.SIGINT:
                self.assertEqual(process.returncode, 130, said)
                self.assertIn("the same command goes on with it", said)
        kept = log.read_text()
        self.assertEqual(kept[-1], "\n")
        log.write_text(kept + '{"event":"sample","point":"3')
        self.l3c("sweep", file, "-o", self.dir / "out")
        whole = log.read_text()
        self.assertTrue(whole.startswith(kept))
        measured = [(s["point"], s["repeat"]) for s in lines(log)[1:]]
        self.assertEqual(len(measured), 15)
        self.assertEqual(len(set(measured)), 15)
        # A line that is damaged is told with its place; samples of another build are not mixed.
        log.write_text(whole.replace('"repeat":2', '"repeat":', 1))
        self.assertRegex(self.l3c("sweep", file, "-o", self.dir / "out", code=1).err, r"samples.jsonl:\d+:1: this is no")
        log.write_text(re.sub('"build":"[^"]*"', '"build":"other"', whole, count=1))
        refused = self.l3c("sweep", file, "-o", self.dir / "out", code=1).err
        self.assertIn("samples.jsonl:1:1: its samples are of another build", refused)
        self.assertIn("--overwrite", refused)

    def test_what_fails_is_recorded(self):
        text = grid('    without: [none, "fusion"]\n    measure: optimise(repeats: 2)')
        done = self.sweep(text, "--json")
        failed = {p["settings"]["without"]: p.get("failed") for p in done.events() if p["event"] == "point"}
        self.assertIsNone(failed["none"])
        self.assertIn("NoCandidates", failed["fusion"])
        self.assertEqual(done.events()[-1]["failed"], 1)
        for limit, said in ((("--seconds-limit", "0.001"), "time: "), (("--memory-limit", "16MB"), "memory: ")):
            bounded = self.sweep(text, "--json", "--overwrite", *limit).events()
            self.assertEqual(bounded[-1]["failed"], 2)
            self.assertIn(said, next(e["failed"] for e in bounded if e["event"] == "point"))
        # They are tried again when that is asked for.
        self.assertEqual(self.sweep(text, "--json", "--retry").events()[-1]["failed"], 1)

    def test_bad_grids_are_told_where(self):
        for fields, place, said in (
                ("    serch: [off]", "5:5", "did you mean 'search'?"),
                ("    search: [off, egrap]", "5:19", "did you mean 'egraph'?"),
                ("    search: [off, off]", "5:19", "given twice"),
                ('    without: ["fusio"]', "5:15", "did you mean 'fusion'?"),
                ('    without: ["fusion/hoists"]', "5:15", "did you mean 'hoist'?"),
                ("    shapes: [(7: 3)]", "5:14", "'softmax' has no number 7"),
                ("    budget: [(node: 3)]", "5:15", "did you mean 'nodes'?"),
                ("    budget: [(iterations: 3)]", "5:14", "is not for 'softmax'"),
                ("    measure: run(step: 3)", "5:18", "did you mean 'steps'?"),
                ("    limits: (memory: 1MB)", "5:22", "16MB"),
                ('    rules: ["nowhere.egg"]', "5:13", "nowhere.egg"),
                ("    memory: [8]", "5:14", "unit"),
                ("    search: []", "5:5", "no values"),
                ("    search: [off", "6:1", "expected")):
            with self.subTest(fields):
                refused = self.sweep(grid(fields), code=1).err
                self.assertIn(f"g.grid:{place}: error", refused)
                self.assertIn(said, refused)
        self.assertIn("did you mean 'search=egraph'?", self.sweep(
            grid("    search: [egraph]"), "--where", "search=egrap", code=1).err)
        self.assertIn("has no workloads", self.sweep("grid g {}\n", code=1).err)
        last = self.sweep(grid("    serch: [off]"), "--json", code=1).events()[-1]
        self.assertEqual(last, {"event": "done", "ok": False})
        self.l3c("sweep", code=2)
        self.assertFalse((self.dir / "out").exists())

    def test_the_engine_alone(self):
        graph = self.dir / "graph.json"
        program = self.write("sums.egg", """
(datatype N (Zero) (One) (Add N N))
(rewrite (Add a b) (Add b a))
(rewrite (Add a (Add b c)) (Add (Add a b) c))
(let top (Add (Zero) (Add (One) (Add (Zero) (Add (One) (Zero))))))
(run-schedule (saturate (run)))
(extract top)
""")
        self.l3c("egraph", "run", program, "--to-json", graph)
        text = grid("    budget: [(iterations: 1), (iterations: 9)]\n    extractor: [tree, exact]\n"
                    "    measure: optimise(repeats: 1)", (program, graph))
        found = [e for e in self.sweep(text, "--json").events() if e["event"] == "point"]
        self.assertEqual(len(found), 4)
        few, many, tree, exact = (e["figures"] for e in found)
        self.assertLess(few["egraph_nodes"], many["egraph_nodes"])
        self.assertLessEqual(exact["dag_cost"], tree["dag_cost"])

    def test_differences_beyond_the_noise(self):
        quiet = [10.0, 10.1, 9.9, 10.2, 9.8]
        a = self.write("a.jsonl", points([quiet, quiet], kernels=17))
        slower = self.write("b.jsonl", points([[1.1 * t for t in quiet], [10.05, 10.15, 9.95, 10.1, 9.9]], kernels=17))
        events = self.l3c("sweep", "compare", a, slower, "--json").events()
        found = {(e["workload"], e["figure"]): e for e in events if e["event"] == "difference"}
        self.assertTrue(found["w0", "step_ms"]["exceeds_noise"])
        self.assertAlmostEqual(found["w0", "step_ms"]["ratio"], 1.1)
        self.assertAlmostEqual(found["w0", "step_ms"]["p_adjusted"], 2 * 2 / 252)
        self.assertFalse(found["w1", "step_ms"]["exceeds_noise"])
        self.assertEqual((events[-1]["compared"], events[-1]["exceed_noise"]), (4, 1))
        self.assertIn("1 of 4 figures differ", self.l3c("sweep", "compare", a, slower).out)
        other = self.write("c.jsonl", points([quiet], kernels=18))
        said = self.l3c("sweep", "compare", a, other).out
        self.assertIn("the same every time", said)
        self.assertIn("only in A: w1 search=egraph", said)
        few = self.write("few.jsonl", points([[1, 1, 1]]))
        self.assertIn("4 of each are the least", self.l3c("sweep", "compare", few, few).out)
        self.assertIn("no difference exceeds the noise", self.l3c("sweep", "compare", a, a).out)
        good = a.read_text()
        for text, place in (("", "1:1: it is empty"), (good[:-30], "3:1: this is no point"), ("{}\n", "1:1: it is no file"),
                            (good.replace('"version": 1', '"version": 2'), "1:1: it is of version 2"),
                            (good.replace("10.1", "-1", 1), "2:1: figure 'step_ms' is absurd")):
            bad = self.write("bad.jsonl", text)
            self.assertIn(f"bad.jsonl:{place}", self.l3c("sweep", "compare", a, bad, code=1).err)
        self.l3c("sweep", "compare", a, self.dir / "nowhere", code=1)
        self.l3c("sweep", "compare", a, code=2)

    def test_the_grids_of_the_repository(self):
        for file in sorted((ROOT / "bench/grids").glob("*.grid")):
            listed = self.l3c("sweep", file, "--list", "--json").events()
            self.assertGreater(listed[-1]["points"], 1, file.name)
        listed = self.l3c("sweep", ROOT / "bench/grids/ablation.grid", "--list", "--json").events()[:-1]
        wanted = [(file.stem, mode) for file in workloads.files() for mode in ("off", "greedy", "egraph")]
        self.assertEqual(sorted((e["workload"], e["settings"]["search"]) for e in listed), sorted(wanted))

    def test_the_page_does_what_it_shows(self):
        page = (ROOT / "docs/sweep.md").read_text()
        self.write("mine.grid", re.search(r"^```grid\n(.*?)^```", page, re.M | re.S).group(1))
        os.symlink(ROOT / "bench", self.dir / "bench")
        commands = re.findall(r"^l3c .*$", page, re.M)
        self.assertGreater(len(commands), 4)
        for command in commands:
            self.l3c(*shlex.split(command)[1:], cwd=self.dir)
        self.assertTrue((self.dir / "sweeps/second/rule_time.svg").exists())


if __name__ == "__main__":
    unittest.main()
