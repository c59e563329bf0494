"""A run that is killed at any moment leaves only whole checkpoints and resumes to the same bits; a disk
that is full, a folder that cannot be written and data that cannot be read lose nothing."""

import hashlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest

from harness import L3C, MNIST, ROOT, L3cTest, small_mnist

IRIS = ROOT / "examples/iris/iris.l3"
KILLS = int(os.environ.get("L3C_KILLS", "10"))


def checkpoints(out):
    return sorted(p for p in (out / "checkpoints").glob("step-*"))


class Kill(L3cTest):
    def setUp(self):
        super().setUp()
        self.data = ("--data", f"iris={ROOT / 'data/iris'}")
        self.plan = self.plan_of(IRIS, self.data, epochs=240, checkpoint_every=30)

    def plan_of(self, program, data, epochs, checkpoint_every):
        """Its plan, with checkpoints so often and not at the end alone."""
        plan = self.dir / f"{program.stem}.l0"
        self.l3c("lower", program, "--to", "l0", *data, "--epochs", epochs, "-o", plan)
        text, replaced = re.subn(r"checkpoint_every: \d+", f"checkpoint_every: {checkpoint_every}",
                                 plan.read_text())
        self.assertEqual(1, replaced)
        plan.write_text(text)
        return plan

    def run_plan(self, name, **kwargs):
        return self.l3c("run", self.plan, *self.data, "-o", self.dir / name, "--json", **kwargs)

    def assert_whole(self, folder):
        """What SHA256SUMS says, by another program than the one that wrote it."""
        sums = (folder / "SHA256SUMS").read_text().splitlines()
        self.assertEqual(3, len(sums))
        for line in sums:
            digest, name = line.split("  ")
            self.assertEqual(digest, hashlib.sha256((folder / name).read_bytes()).hexdigest(), folder)

    def assert_same_end(self, whole, done):
        for figure in ("weights_sha256", "loss", "accuracy", "steps", "samples"):
            self.assertEqual(whole[figure], done[figure], figure)

    def test_killed_at_any_moment(self):
        start = time.time()
        whole = self.run_plan("whole").done
        seconds = time.time() - start
        choose = random.Random(KILLS)
        killed = 0
        for n in range(KILLS):
            out = self.dir / f"killed-{n}"
            # Killed once on its way, and half of the time once more on the way back.
            command = [L3C, "run", str(self.plan), *self.data, "-o", str(out)]
            for _ in range(choose.choice((1, 2))):
                process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)
                # From the first moments on, in which the folder is made, to the last.
                time.sleep(choose.uniform(0, seconds))
                process.send_signal(signal.SIGKILL)
                process.wait()
                killed += process.returncode == -signal.SIGKILL
                for folder in checkpoints(out):
                    self.assert_whole(folder)
                if not (out / "plan.l0").exists():
                    break
                command = [L3C, "run", "--resume", str(out), *self.data]
            if (out / "plan.l0").exists():
                done = self.l3c("run", "--resume", out, *self.data, "--json").done
            else:  # killed before there was a run
                done = self.run_plan(f"killed-{n}", code=0).done
            self.assert_same_end(whole, done)
            for line in (out / "events.jsonl").read_text().splitlines():
                self.assertTrue(line.startswith("{") and line.endswith("}"), line)
            shutil.rmtree(out)
        self.assertGreater(killed, KILLS // 3)

    def test_a_start_that_was_killed_is_no_run(self):
        """The plan is saved last; what lies there without it may be the user's only without run.json."""
        dead = self.dir / "dead"
        dead.mkdir()
        (dead / "run.json").write_text("{}")
        (dead / "spec.l3").write_text("// half of it")
        self.run_plan("dead", code=0)
        self.assertTrue((dead / "plan.l0").exists())
        own = self.dir / "own"
        own.mkdir()
        (own / "spec.l3").write_text("// a program")
        self.assertIn("holds an earlier run", self.run_plan("own", code=1).err)
        self.assertEqual("// a program", (own / "spec.l3").read_text())

    def test_a_full_disk(self):
        """A limit on the size of files stands for it, which needs no rights: the write fails."""
        whole = self.run_plan("whole").done
        sizes = [p.stat().st_size for p in checkpoints(self.dir / "whole")[-1].iterdir()]

        # The plan fits, events.jsonl grows until it does not: the run ends and says so.
        plan = self.plan.stat().st_size
        self.assertGreater(plan, max(sizes))
        events = (self.dir / "whole" / "events.jsonl").stat().st_size
        self.assertGreater(events, plan)
        done = subprocess.run(
            [L3C, "run", str(self.plan), *self.data, "-o", str(self.dir / "events")], cwd=ROOT,
            capture_output=True, text=True, timeout=240,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (plan + 1, plan + 1)))
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertIn("error[environment]", done.stderr)
        self.assertIn("events.jsonl: could not be written", done.stderr)
        self.assert_whole(checkpoints(self.dir / "events")[-1])

        # A checkpoint that does not fit any more: the one before stays, and nothing of the new one.
        process = subprocess.Popen([L3C, "run", str(self.plan), *self.data, "-o", str(self.dir / "full")],
                                   cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 60
        while not checkpoints(self.dir / "full") and time.time() < deadline:
            time.sleep(0.001)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (min(sizes) // 2, min(sizes) // 2))
        _, err = process.communicate(timeout=60)
        self.assertEqual(1, process.returncode, err)
        self.assertIn("error[environment]", err)
        self.assertIn("cannot write: File too large", err)
        self.assertIn("the last checkpoint is kept", err)
        kept = checkpoints(self.dir / "full")
        self.assertTrue(kept)
        for folder in kept:
            self.assert_whole(folder)
        self.assertEqual([], list((self.dir / "full/checkpoints").glob(".partial-step*")))
        done = self.l3c("run", "--resume", self.dir / "full", *self.data, "--json").done
        self.assert_same_end(whole, done)


    def as_a_user(self, *command):
        """Not as root, who may write everywhere."""
        user = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        return subprocess.Popen([L3C, *map(str, command)], cwd=ROOT, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, **user)

    def test_a_folder_that_cannot_be_written(self):
        whole = self.run_plan("whole").done
        os.chmod(self.dir, 0o755)
        # From the beginning: before any training.
        locked = self.dir / "locked"
        locked.mkdir(mode=0o555)
        process = self.as_a_user("run", self.plan, *self.data, "-o", locked / "run")
        _, err = process.communicate(timeout=60)
        self.assertEqual(1, process.returncode, err)
        self.assertIn("error[environment]: cannot make the folder", err)
        # In the middle of the run.
        out = self.dir / "out"
        out.mkdir()
        os.chmod(out, 0o777)
        process = self.as_a_user("run", self.plan, *self.data, "-o", out)
        deadline = time.time() + 60
        while not checkpoints(out) and time.time() < deadline:
            time.sleep(0.001)
        os.chmod(out / "checkpoints", 0o555)
        _, err = process.communicate(timeout=60)
        self.assertEqual(1, process.returncode, err)
        self.assertIn("error[environment]", err)
        self.assertIn("Permission denied", err)
        self.assertIn("the last checkpoint is kept", err)
        for folder in checkpoints(out):
            self.assert_whole(folder)
        # A run that cannot save is not begun again.
        process = self.as_a_user("run", "--resume", out, *self.data)
        _, err = process.communicate(timeout=60)
        self.assertEqual(1, process.returncode, err)
        self.assertIn("Permission denied", err)
        os.chmod(out / "checkpoints", 0o777)
        done = self.l3c("run", "--resume", out, *self.data, "--json").done
        self.assert_same_end(whole, done)

    def test_data_that_becomes_unreadable_in_mid_epoch(self):
        folder = small_mnist(self.dir / "mnist", rows=640, compress=False)
        images = folder / "train-images-idx3-ubyte"
        data = ("--data", f"mnist={folder}")
        plan = self.plan_of(MNIST, data, epochs=80, checkpoint_every=4)
        reference = self.run_json(plan, *data)
        out = self.dir / "out"
        process = subprocess.Popen(
            [L3C, "run", str(plan), *data, "--data-memory", "0B", "-o", str(out)], cwd=ROOT,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 60
        while not checkpoints(out) and time.time() < deadline:
            time.sleep(0.001)
        bytes_before = images.read_bytes()
        os.truncate(images, 5000)
        _, err = process.communicate(timeout=60)
        images.write_bytes(bytes_before)
        self.assertEqual(1, process.returncode, err)
        self.assertIn("error[environment]", err)
        self.assertIn("train-images-idx3-ubyte: has become shorter since the run began", err)
        self.assertIn("the last checkpoint is kept", err)
        done = self.l3c("run", "--resume", out, "--io", "portable", "--data-memory", "0B", "--json").done
        self.assert_same_end(reference, done)


if __name__ == "__main__":
    unittest.main()
