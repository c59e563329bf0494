"""Ctrl-C keeps a checkpoint; a resumed run ends bitwise equal to an unbroken one."""

import signal
import subprocess
import time
import unittest

from harness import L3C, MNIST, ROOT, L3cTest


class Interrupt(L3cTest):
    def start(self, out, epochs=2):
        return subprocess.Popen(
            [L3C, "run", str(MNIST), "--epochs", str(epochs), "-o", str(out)],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )

    def wait_for_steps(self, out, steps):
        deadline = time.time() + 60
        events = out / "events.jsonl"
        while time.time() < deadline:
            if events.exists() and len(events.read_bytes().splitlines()) > steps:
                return
            time.sleep(0.01)
        self.fail("no steps in a minute")

    def test_interrupted_and_resumed_equals_unbroken(self):
        whole = self.run_json(MNIST, "--epochs", 2)
        for steps in (20, 300):
            out = self.dir / f"broken-{steps}"
            process = self.start(out)
            self.wait_for_steps(out, steps)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
            self.assertEqual(130, process.returncode, stderr)
            self.assertIn("checkpoint kept", stdout)
            self.assertIn("--resume", stdout)
            resumed = self.l3c("run", "--resume", out, "--json").done
            self.assertEqual(whole["weights_sha256"], resumed["weights_sha256"])
            self.assertEqual(whole["steps"], resumed["steps"])
            self.assertEqual(whole["loss"], resumed["loss"])

    def test_killed_leaves_the_last_good_checkpoint(self):
        out = self.dir / "killed"
        process = self.start(out)
        deadline = time.time() + 60
        while not list((out / "checkpoints").glob("step-*")) and time.time() < deadline:
            time.sleep(0.005)
        process.kill()
        process.communicate()
        resumed = self.run_json("--resume", out, "-o", out)
        whole = self.run_json(MNIST, "--epochs", 2)
        self.assertEqual(whole["weights_sha256"], resumed["weights_sha256"])
        self.assertEqual(whole["loss"], resumed["loss"])
        for option in (("--steps", 40), ("--epochs", 3), ("--seed", 4), ("--memory", "1MB"),
                       ("--synthetic",), ("--overwrite",), ("-o", self.dir / "elsewhere")):
            err = self.l3c("run", "--resume", out, *option, code=2).err
            self.assertIn("goes on with a run as it was begun", err)

    def test_a_running_folder_is_left_alone(self):
        out = self.dir / "busy"
        process = self.start(out, epochs=1000)
        self.wait_for_steps(out, 5)
        for args in (("run", MNIST, "-o", out, "--overwrite"), ("run", "--resume", out)):
            self.assertIn("error[environment]", self.l3c(*args, code=1).err)
        self.assertIsNone(process.poll())  # it was running all the time
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(130, process.returncode)

    def test_corrupt_checkpoint_is_refused(self):
        out = self.dir / "run"
        self.run_json(MNIST, "--steps", 3, "-o", out)
        for path in sorted((out / "checkpoints").rglob("*.safetensors")):
            data = bytearray(path.read_bytes())
            data[-1] ^= 1
            path.write_bytes(data)
        result = self.l3c("eval", out, code=1)
        self.assertIn("damaged", result.err)


if __name__ == "__main__":
    unittest.main()
