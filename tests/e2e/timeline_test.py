"""pipeline_depth: 2 loads the next batch while a step computes; the timeline shows it, and the bits are
those of depth 1."""

import json
import os
import statistics
import unittest

from harness import MNIST, ROOT, L3cTest


class Timeline(L3cTest):
    def run_at(self, depth, *args):
        path = self.dir / f"depth-{depth}.json"
        out = self.dir / f"run-{depth}"
        done = self.l3c("run", MNIST, "--force", f"l1/pipeline_depth={depth}", "--timeline", path, "-o",
                        out, "--json", *args).done
        events = json.loads(path.read_text())["traceEvents"]
        return done, [e for e in events if e["ph"] == "X"], {
            e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}

    def training(self, spans, kind):
        return [e for e in spans if e["cat"] == kind and "train" in e["args"]["sequence"]]

    def steps(self, spans):
        """Of each step the time in kernels, and the time from its last one to the first of the next."""
        steps = {}
        for e in self.training(spans, "launch"):
            begin, end, busy = steps.get(e["args"]["argument"], (e["ts"], 0, 0))
            steps[e["args"]["argument"]] = (begin, e["ts"] + e["dur"], busy + e["dur"])
        ordered = [steps[k] for k in sorted(steps)]
        return [(busy, after[0] - end) for (_, end, busy), after in zip(ordered, ordered[1:])]

    def ahead(self, spans):
        """The share of batches that were there before the step before them was done with its own."""
        done = {e["args"]["argument"]: e["ts"] for e in self.training(spans, "signal")
                if e["name"].startswith("free")}
        loaded = {e["args"]["argument"]: e["ts"] + e["dur"] for e in self.training(spans, "load")}
        return sum(loaded[k + 1] < done[k] for k in range(199)) / 199

    def test_loading_overlaps_computing(self):
        system = ("--system", ROOT / "examples/systems/one_cpu.l1")  # cores for two loaders
        deep, spans, tracks = self.run_at(2, "--steps", 200, *system)
        self.assertEqual({"loader_0", "loader_1", "compute"}, set(tracks.values()))
        # Batches take turns on the loaders, and what one loads the other does not wait for.
        for e in self.training(spans, "load"):
            self.assertEqual(f"loader_{e['args']['argument'] % 2}", tracks[e["tid"]])
        self.assertEqual(200, len(self.training(spans, "load")))
        self.assertEqual(200, len(self.training(spans, "report")))
        for tid in tracks:  # a stream does one thing after another
            own = [e for e in spans if e["tid"] == tid]
            for a, b in zip(own, own[1:]):
                self.assertLessEqual(a["ts"] + a["dur"], b["ts"] + 0.002)
        self.assertGreater(self.ahead(spans), 0.25)
        flat, spans, tracks = self.run_at(1, "--steps", 200, *system)
        self.assertEqual({"loader", "compute"}, set(tracks.values()))
        self.assertEqual(0, self.ahead(spans))
        for figure in ("weights_sha256", "loss", "accuracy", "train_loss"):
            self.assertEqual(deep[figure], flat[figure])

    @unittest.skipUnless("L3C_FULL" in os.environ, "at length, in the nightly preset")
    def test_a_step_is_computing(self):
        """Of the time of MNIST's steps, 95 % and more is computing and not waiting for batches. A median:
        other work on the machine now and then holds a thread up for longer than a step."""
        _, spans, _ = self.run_at(2, "--epochs", 2)
        steps = self.steps(spans)
        del steps[468]  # an epoch's last: an evaluation and a checkpoint follow
        busy = sum(busy for busy, _ in steps)
        total = busy + sum(gap for _, gap in steps)
        median = statistics.median(busy / (busy + gap) for busy, gap in steps)
        print(f"computing: {busy / total:.3f} of the steps' time, median {median:.3f}")
        self.assertGreater(median, 0.95)


if __name__ == "__main__":
    unittest.main()
