#!/usr/bin/env python3
"""l3c calibrate, and plans that rest on what it measured."""

import json
import os
import pathlib
import shutil
import unittest
import unittest.mock

from harness import ROOT, L3cTest

SMALL = ROOT / "bench/workloads/mlp_small_sgd.l2"


class Calibrate(L3cTest):
    @classmethod
    def setUpClass(cls):
        # One short calibration serves all tests: its figures, and the coarsest shapes.
        first = cls("measure")
        first.setUp()
        cls.data = os.environ["XDG_DATA_HOME"]
        events = first.l3c("calibrate", "--seconds", 0.05, "--json").events()
        cls.evidence = events[0]
        assert events[-1] == {"event": "done"}, events
        first.doCleanups()

    def measure(self):
        pass

    def optimize(self, *args, **kwargs):
        return self.l3c("optimize", SMALL, "--synthetic", "--json", "--no-cache", *args, **kwargs)

    def kinds(self, result):
        return {cost["evidence"] for event in result.events() if event["event"] == "decision"
                for cost in event["cost"] if event["lowering"] == "l1->l0" and cost["name"] == "time"}

    def test_the_figures_are_those_of_a_machine(self):
        figures = self.evidence["figures"]
        self.assertEqual(self.evidence["revision"], 1)
        self.assertTrue(self.evidence["current"])
        self.assertGreater(figures["fma_flops"], 1e9)
        self.assertGreater(figures["exp2_seconds"], figures["simple_seconds"])
        self.assertGreater(figures["l2_bandwidth"], figures["memory_bandwidth"] / 4)
        file = json.loads(pathlib.Path(self.evidence["path"]).read_text())
        self.assertEqual(file["target"]["fingerprint"], pathlib.Path(self.evidence["path"]).parent.name)
        self.assertTrue(all(point["seconds"]["samples"] >= 1 for point in file["points"]))

    def test_costs_rest_on_it_and_say_so(self):
        calibrated = self.optimize()
        self.assertEqual(calibrated.out, self.optimize().out)
        said = [e for e in calibrated.events() if e["event"] == "evidence"]
        self.assertEqual(said, [{"event": "evidence", "calibrated": True, "revision": 1}])
        self.assertIn("extrapolated", self.kinds(calibrated))
        plain = self.optimize("--evidence", "none")
        self.assertEqual(self.kinds(plain), {"analytical"})
        self.assertIn({"event": "evidence", "calibrated": False}, plain.events())
        explained = self.l3c("optimize", SMALL, "--synthetic", "--explain").out
        self.assertIn("costs rest on revision 1", explained)
        self.l3c("run", SMALL, "--synthetic", "--steps", 2, "-o", self.dir / "run")

    def test_a_step_is_predicted(self):
        cost = next(e for e in self.optimize().events() if e["event"] == "cost")
        self.assertGreater(cost["predicted_step_time"], 0)
        text = self.l3c("optimize", SMALL, "--synthetic").out
        self.assertIn("a training step is predicted to take", text)

    def test_a_run_is_observed_when_asked(self):
        folder = pathlib.Path(self.evidence["path"]).parent
        run = lambda *args, **kwargs: self.l3c("run", SMALL, "--synthetic", "--overwrite", "-o", self.dir / "run",
                                               "--observe", *args, **kwargs)
        told = run("--steps", 40, "--json").events()
        self.addCleanup((folder / "2.json").unlink)
        observed = next(e for e in told if e["event"] == "evidence")
        self.assertEqual((observed["revision"], observed["path"]), (2, str(folder / "2.json")))
        before, after = (json.loads((folder / f"{n}.json").read_text()) for n in (1, 2))
        self.assertEqual(before["figures"], after["figures"])
        points = lambda file: {(p["probe"], *p["extents"]): p["seconds"] for p in file["points"]}
        added = {key for key, seconds in points(after).items() if points(before).get(key) != seconds}
        self.assertEqual(len(added), observed["observed"])
        self.assertIn(("product atb", 784, 256, 128), added)  # the first layer's gradient
        # Plans change when they are asked to: what was observed is measured then.
        kinds = lambda *args: {e["evidence"] for d in self.optimize(*args).events() if d["event"] == "decision"
                               for e in d["cost"]}
        rests = lambda *args: [e["revision"] for e in self.optimize(*args).events() if e["event"] == "evidence"]
        self.assertEqual((rests(), rests("--evidence", 2)), ([1], [2]))
        self.assertIn("extrapolated", kinds("--evidence", 2))
        # What cannot be observed says so before the run.
        shutil.rmtree(self.dir / "run")
        for args, said in ((("--engine", "interpreter"), "compiled kernels"), (("--evidence", "none"), "l3c calibrate"),
                           (("--threads", 64), "leave out --threads")):
            self.assertIn(said, run("--steps", 40, *args, code=1).err)
            self.assertFalse((self.dir / "run").exists())
        self.assertIn("train for more steps", run("--steps", 3, code=1).err)

    def test_what_did_not_fit_into_the_time_is_told(self):
        # Elsewhere, so that the revision of the other tests stays the newest.
        with unittest.mock.patch.dict(os.environ, XDG_DATA_HOME=str(self.dir / "evidence")):
            told = self.l3c("calibrate", "--seconds", 0).out
        self.assertIn("no shape fitted into --seconds 0: its costs stay analytical", told)
        self.assertNotIn(" 0 shapes", told)

    def test_a_later_revision_is_used_when_asked_for(self):
        folder = pathlib.Path(self.evidence["path"]).parent
        second = json.loads((folder / "1.json").read_text()) | {"revision": 2}
        self.addCleanup((folder / "2.json").unlink)
        (folder / "2.json").write_text(json.dumps(second))
        rests = lambda *args: [e["revision"] for e in self.optimize(*args).events() if e["event"] == "evidence"]
        self.assertEqual(rests(), [1])
        self.assertEqual(rests("--evidence", 2), [2])
        self.l3c("calibrate", "--use", 2)
        self.addCleanup(self.l3c, "calibrate", "--use", 1)
        self.assertEqual(rests(), [2])
        refused = self.l3c("calibrate", "--use", 3, code=1).err
        self.assertIn("the newest of this machine is 2", refused)
        self.assertIn(str(folder / "3.json"), refused)
        self.assertIn(str(folder / "3.json"), self.optimize("--evidence", 3, code=1).err)
        # What decides nothing is not taken in silence.
        self.l3c("calibrate", "--use", 1, "--seconds", 3, code=2)
        plan = self.dir / "plan.l0"
        self.l3c("lower", SMALL, "--synthetic", "--to", "l0", "-o", plan)
        self.assertIn("--evidence does not apply", self.l3c("run", plan, "--evidence", "none", code=2).err)

    def test_a_bad_file_is_refused(self):
        good = pathlib.Path(self.evidence["path"]).read_text()
        wrong = json.loads(good)
        wrong["figures"]["memory_bandwidth"]["value"] = 0
        other = json.loads(good)
        other["target"]["cores"] += 1
        fast = json.loads(good)
        fast["points"] = [{"probe": "product ab", "extents": [4096, 4096, 4096],
                           "seconds": {"value": 1e-9, "spread": 0, "samples": 3}}]
        before = json.loads(good) | {"revision": 0}
        for text, why in ((good[:-20], "cut short"), (json.dumps(wrong), "absurd"), (json.dumps(other), "another machine"),
                          (json.dumps(fast), "a point is absurd"), (json.dumps(before), "revision is absurd"),
                          (good.replace('"version": 1', '"version": 9'), "version 9"), ("", "cut short")):
            file = self.write("evidence.json", text)
            self.assertIn(why, self.optimize("--evidence", file, code=1).err)
        for number in ("0", "-1", "99999999999999999999"):
            refused = self.optimize("--evidence", number, code=1).err
            self.assertIn(f"--evidence {number}: revisions are numbers from 1 on", refused)
            self.assertIn("--evidence none goes without", refused)
        self.assertIn("nowhere.json", self.optimize("--evidence", "nowhere.json", code=1).err)
        # The current one: a warning, and the analytical plan.
        analytical = [e for e in self.optimize("--evidence", "none").events() if e["event"] == "decision"]
        path = pathlib.Path(self.evidence["path"])
        self.addCleanup(path.write_text, good)
        path.write_text(good[: len(good) // 2])
        warned = self.optimize()
        self.assertIn("warning: " + str(path), warned.err)
        self.assertEqual([e for e in warned.events() if e["event"] == "decision"], analytical)
        current = path.parent / "current"
        self.addCleanup(current.write_text, current.read_text())
        current.write_text("the first\n")
        self.assertIn(f"warning: {current}: it names no revision", self.optimize().err)


if __name__ == "__main__":
    unittest.main()
