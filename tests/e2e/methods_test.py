"""Every program of examples/methods trains: compiled code and the interpreter agree on every loss."""

import json
import re
import unittest

from harness import ROOT, L3cTest

METHODS = sorted((ROOT / "examples/methods").glob("*.l2"))
STEPS = 3


class Methods(L3cTest):
    def losses(self, program, engine):
        out = self.dir / f"{program.stem}-{engine}"
        # A few steps of each phase: the interpreter would take long over a whole test split.
        head, phases, tail = program.read_text().partition("phases [")
        tail = re.sub(r"(epochs|steps): \d+(, eval: \d+)?", f"steps: {STEPS}, eval: 0", tail)
        short = self.write(program.name, head + phases + tail)
        length = () if phases else ("--steps", STEPS)
        done = self.run_json(short, "--synthetic", *length, "--engine", engine, "-o", out)
        events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
        return [event["loss"] for event in events if event["event"] == "step"] + [done["train_loss"]]

    def test_compiled_code_and_the_interpreter_agree(self):
        self.assertGreater(len(METHODS), 2)
        for program in METHODS:
            with self.subTest(program.stem):
                compiled = self.losses(program, "jit")
                self.assertGreaterEqual(len(compiled), STEPS)
                for ours, theirs in zip(compiled, self.losses(program, "interpreter")):
                    self.assertLess(abs(ours - theirs), 1e-4 * max(1, abs(theirs)))

    def test_forms_agree(self):
        for program, form in (("language", "weighted-mean/divide-last"), ("cnn", "convolution/im2col")):
            with self.subTest(form):
                losses = []
                for extent in ("everywhere", "nowhere"):
                    losses.append(self.run_json(ROOT / f"examples/methods/{program}.l2", "--synthetic",
                                                "--steps", STEPS, "--force", f"l0/train/{form}={extent}",
                                                "-o", self.dir / f"{program}-{extent}")["train_loss"])
                self.assertLess(abs(losses[0] - losses[1]), 1e-4 * max(1, abs(losses[0])))

    def test_canonical_text_is_stable(self):
        for program in METHODS:
            with self.subTest(program.stem):
                text = self.l3c("lower", program, "--to", "l2").out
                self.assertEqual(text, self.l3c("lower", self.write("again.l2", text), "--to", "l2").out)


if __name__ == "__main__":
    unittest.main()
