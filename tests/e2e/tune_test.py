#!/usr/bin/env python3
"""--tune SECONDS: whole steps are timed, what is kept goes on, and the choice stands in the plan."""

import os
import signal
import subprocess
import time
import unittest

from harness import L3C, ROOT, L3cTest

SMALL = ROOT / "examples/methods/binary.l2"


class Tune(L3cTest):
    def setUp(self):
        super().setUp()
        self.env = os.environ | {"XDG_CACHE_HOME": str(self.dir / "cache")}
        before = os.environ["XDG_CACHE_HOME"]
        os.environ["XDG_CACHE_HOME"] = str(self.dir / "cache")
        self.addCleanup(os.environ.__setitem__, "XDG_CACHE_HOME", before)

    def test_it_goes_on_after_a_kill_and_repeats_what_it_took(self):
        tune = ("optimize", SMALL, "--synthetic", "--json", "--tune")
        turns = 0
        for how in (signal.SIGKILL, signal.SIGINT):
            process = subprocess.Popen([L3C, *map(str, tune), "600"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       text=True, env=self.env)
            # The third turn has begun: two are kept.
            seen = 0
            for line in process.stdout:
                seen += '"event":"tuning"' in line
                if seen == 3:
                    break
            process.send_signal(how)
            said = process.communicate(timeout=60)[1]
            if how == signal.SIGINT:
                self.assertEqual(process.returncode, 130, said)
                self.assertIn("the same command goes on", said)
            events = self.l3c(*tune, 0).events()
            tuned = next(e for e in events if e["event"] == "tuned")
            self.assertTrue(tuned["reused"])
            self.assertGreaterEqual(tuned["turns"], turns + 1)
            turns = tuned["turns"]
            self.assertEqual(events[-1]["event"], "done")
        trials = [e for e in events if e["event"] == "trial"]
        self.assertEqual(sum(e["turns"] for e in trials), turns)
        # What --json says was forced is the plan that is lowered to, byte for byte.
        lower = ("lower", SMALL, "--synthetic", "--to", "l0")
        force = [part for id, label in (tuned.get("force") or {}).items() for part in ("--force", f"{id}={label}")]
        plan = self.l3c(*lower, "--tune", 0).out
        self.assertEqual(plan, self.l3c(*lower, *force).out)
        self.assertIn("tuning", self.l3c("cache").out)
        # A run keeps it as its plan, and repeats it from there.
        run = self.dir / "run"
        ran = self.l3c("run", SMALL, "--synthetic", "--steps", 3, "--tune", 0, "--explain", "-o", run)
        self.assertIn("tuned in", ran.err)
        first = self.l3c("run", run / "plan.l0", "--synthetic", "--json", "-o", self.dir / "again").done
        self.assertIn(first["weights_sha256"], ran.out)

    def test_wrong_usage(self):
        for args in (("run", SMALL, "--tune", "nan"), ("run", SMALL, "--tune", -1), ("lower", SMALL, "--to", "l1", "--tune", 1),
                     ("run", SMALL, "--tune", 1, "--engine", "interpreter")):
            self.l3c(*args, "--synthetic", code=2)
        plan = self.write("plan.l0", self.l3c("lower", SMALL, "--synthetic", "--to", "l0").out)
        self.assertIn("no decision left", self.l3c("run", plan, "--tune", 1, code=2).err)


if __name__ == "__main__":
    unittest.main()
