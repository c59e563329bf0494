"""l3c build: one executable that trains with the bits of l3c run, and needs nothing of l3c."""

import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import struct
import subprocess
import tempfile
import time
import unittest

import harness
from harness import MNIST, ROOT, L3cTest

EXAMPLES = ROOT / "examples"
IRIS = EXAMPLES / "iris/iris.l3"
# Two kinds of program; the nightly test has every example.
FEW = [("methods/phases.l2",), ("methods/recurrent.l2", "--steps", 12)]
TIMES = {"train_seconds", "samples_per_second", "compile_seconds", "peak_rss_bytes", "checkpoint",
         "step_ms", "first_step_s"}


class Program(L3cTest):
    def build(self, file, *args, name="train", **kwargs):
        path = self.dir / name
        self.l3c("build", file, "-o", path, *args, **kwargs)
        return path

    def start(self, program, *args, code=0, cwd=None, env=None, timeout=240):
        done = subprocess.run([program, *map(str, args)], cwd=cwd or self.dir, capture_output=True, text=True,
                              env=env, timeout=timeout, stdin=subprocess.DEVNULL)
        result = harness.Result(done)
        if code is not None:
            self.assertEqual(code, result.code, result.err)
        return result


class Build(Program):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="l3c-build-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.mnist = cls.folder / "train"
        subprocess.run([harness.L3C, "build", MNIST, "-o", cls.mnist], cwd=ROOT, check=True, stdout=subprocess.PIPE)

    def test_same_bits_as_run(self):
        for example, *length in FEW:
            with self.subTest(example):
                expected = self.run_json(EXAMPLES / example, *length)
                program = self.build(EXAMPLES / example, *length)
                done = self.start(program, "--json", "--threads", 1).done
                for figure in expected.keys() - TIMES:
                    self.assertEqual(expected[figure], done[figure], figure)
                self.assertEqual(expected.keys(), done.keys())
                shutil.rmtree(self.dir / "runs")

    def test_it_stands_alone(self):
        """Its data alone is left: no source, no compiler, no cache, no library."""
        spec = self.write("src/mine.l3", IRIS.read_text())
        data = ("--data", f"iris={ROOT / 'data/iris'}")
        expected = self.run_json(IRIS, "--epochs", 2)
        program = self.build(spec, *data, "--epochs", 2)
        spec.unlink()
        done = self.start(program, "--json", *data, env={"PATH": "/none", "HOME": "/none"}).done
        self.assertEqual(expected["weights_sha256"], done["weights_sha256"])
        whole = program.read_bytes()
        self.assertTrue(b"LLVM" not in whole, "LLVM is part of it")
        # No segment asks for a loader: it is static.
        table, count = struct.unpack_from("<Q", whole, 32)[0], struct.unpack_from("<H", whole, 56)[0]
        kinds = [struct.unpack_from("<I", whole, table + 56 * i)[0] for i in range(count)]
        self.assertEqual(0, kinds.count(3))
        self.assertGreaterEqual(kinds.count(1), 5)

    def test_the_folder_it_leaves_is_that_of_run(self):
        program = self.build(MNIST, "--steps", 20)
        mine = self.start(program, "-o", "mine", "--json").done
        theirs = self.run_json(MNIST, "--steps", 20, "-o", self.dir / "theirs")
        self.assertEqual(theirs["weights_sha256"], mine["weights_sha256"])
        for name in ("spec.l3", "method.l2", "placement.l1", "plan.l0", "run.json"):
            self.assertEqual((self.dir / "theirs" / name).read_text(), (self.dir / "mine" / name).read_text(),
                             name)
        scored = self.l3c("eval", self.dir / "mine", "--json").done
        self.assertEqual((theirs["accuracy"], theirs["weights_sha256"]),
                         (scored["accuracy"], scored["weights_sha256"]))

    def test_length_and_seed_as_for_a_plan(self):
        self.start(self.mnist, "--steps", 1, "-o", "once")
        plan = self.write("plan.l0", self.l3c("lower", MNIST, "--to", "l0").out)
        expected = self.run_json(plan, "--steps", 15, "--seed", 4)
        done = self.start(self.mnist, "--json", "--steps", 15, "--seed", 4).done
        self.assertEqual((15, expected["weights_sha256"]), (done["steps"], done["weights_sha256"]))

    def test_a_run_goes_on_in_either(self):
        whole = self.start(self.mnist, "--steps", 300, "--json").done["weights_sha256"]
        for resume in ([self.mnist], [harness.L3C, "run"]):
            folder = self.dir / f"cut-{len(resume)}"
            run = subprocess.Popen([self.mnist, "-o", folder, "--steps", "300", "--threads", "1"], cwd=self.dir,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not (folder / "checkpoints").exists():
                self.assertIsNone(run.poll())
                time.sleep(0.002)
            time.sleep(0.05)
            run.send_signal(signal.SIGINT)
            out, _ = run.communicate(timeout=60)
            self.assertEqual(130, run.returncode, out)
            self.assertIn(f"continue with: {self.mnist} --resume {folder}", out)
            done = subprocess.run([*resume, "--resume", folder, "--json"], cwd=self.dir, capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertEqual(whole, json.loads(done.stdout.splitlines()[-1])["weights_sha256"])
        other = self.dir / "other"
        self.run_json(IRIS, "--steps", 3, "-o", other)
        self.assertIn("holds a run of another plan", self.start(self.mnist, "--resume", other, code=1).err)

    def test_it_starts_at_once(self):
        times = []
        for _ in range(15):
            began = time.monotonic()
            self.start(self.mnist, "--help")
            times.append(time.monotonic() - began)
        print(f"--help in {min(times) * 1e3:.1f} ms at best, {statistics.median(times) * 1e3:.1f} in the median")
        # Other programs run beside this one. The tables are read before the options are.
        self.assertLess(min(times), 0.020)
        done = self.start(self.mnist, "--json", "--synthetic", "--steps", 1).done
        self.assertLess(done["compile_seconds"], 1)

    def test_a_cpu_without_its_instructions_is_told(self):
        known = set(pathlib.Path("/proc/cpuinfo").read_text().split())
        absent = next(name for name in ("fma4", "xop", "tbm", "sse4a") if name not in known)
        program = self.build(IRIS, "--cpu", f"+sse4.2,+{absent}")
        self.assertIn("Trains", self.start(program, "--help").out)
        result = self.start(program, "--json", code=1)
        self.assertRegex(result.err, rf"error\[environment\]: .*compiled for a CPU with {absent}, which")
        self.assertEqual(["diagnostic", "done"], [event["event"] for event in result.events()])
        self.assertFalse(list(self.dir.glob("runs/*")))

    def test_older_cpus(self):
        program = self.build(IRIS, "--cpu", "x86-64-v3", "--epochs", 2)
        loss = self.run_json(IRIS, "--epochs", 2)["loss"]
        self.assertAlmostEqual(loss, self.start(program, "--json").done["loss"], delta=1e-3 * loss)

    def test_wrong_use(self):
        for args, message in [
            (("--epoch", 3), "did you mean '--epochs'"),
            (("--search", "off"), "--search shapes the plan, which is part of this program"),
            (("--steps", -1), "--steps"),
            (("--steps", 1, "--epochs", 1), "exclude each other"),
            (("--data", "mnist"), "NAME=DIR"),
            (("--data-memory", "much"), "--data-memory much"),
            (("--resume", "x", "--seed", 1), "goes on with a run as it was begun"),
        ]:
            self.assertIn(message, self.start(self.mnist, *args, code=2).err)
        self.assertIn("there is no folder 'x'", self.start(self.mnist, "--resume", "x", code=1).err)
        err = self.start(self.mnist, "--data", "mnist=/nowhere", code=1).err
        self.assertRegex(err, r"^error\[environment\]: .*/nowhere")
        for cpu in ("x86-64-v9", "+avx3"):
            self.assertIn("--cpu: there is no", self.l3c("build", IRIS, "-o", self.dir / "x", "--cpu", cpu, code=2).err)
        self.assertIn("cannot write", self.l3c("build", IRIS, "-o", self.dir / "no/such", code=1).err)
        self.l3c("build", IRIS, code=2)

    def test_damage_is_told(self):
        whole = self.mnist.read_bytes()
        at = whole.index(b"\x06" + bytes(7) + b"images")  # a length and its text, in the tables
        damaged = self.write("damaged", whole[:at] + b"\xff" * 8 + whole[at + 8:])
        damaged.chmod(0o755)
        self.assertIn("this program is damaged", self.start(damaged, code=1).err)

    def test_the_same_program_twice(self):
        one = self.build(IRIS, name="one").read_bytes()
        self.assertEqual(one, self.build(IRIS, name="two").read_bytes())

    def test_tools_see_its_code(self):
        readelf = shutil.which("readelf")
        if readelf is None:
            self.skipTest("no readelf")
        sections = subprocess.run([readelf, "-SlW", self.mnist], capture_output=True, text=True)
        self.assertEqual("", sections.stderr)
        self.assertRegex(sections.stdout, r"\.text\.l3c .* AX ")
        self.assertRegex(sections.stdout, r"\.rodata\.l3c_plan .* A ")
        print(f"{self.mnist.stat().st_size} bytes")


@unittest.skipUnless(os.environ.get("L3C_FULL") == "1", "at length in the nightly preset")
class EveryExample(Program):
    def test_same_bits_as_run(self):
        done = 0
        for spec in sorted([*EXAMPLES.glob("*/*.l3"), *EXAMPLES.glob("*/*.l2")]):
            with self.subTest(spec.relative_to(EXAMPLES)):
                # Those without data of their own train on random data.
                data = () if "there is no folder" not in self.l3c("lower", spec, "--to", "l1", code=None).err \
                    else ("--synthetic",)
                expected = self.run_json(spec, *data, timeout=1200)["weights_sha256"]
                program = self.build(spec, *data)
                found = self.start(program, *data, "--json", timeout=1200).done["weights_sha256"]
                self.assertEqual(expected, found)
                done += 1
        self.assertGreater(done, 25)


class Emit(L3cTest):
    def test_targets(self):
        plan = self.l3c("lower", MNIST, "--to", "l0").out
        kernels = re.findall(r"^kernel (\w+)\(", plan, re.MULTILINE)
        units = re.findall(r"^control (\w+) \{", plan, re.MULTILINE)
        path = self.write("plan.l0", plan)
        for target, suffix, sign in [("llvm", ".ll", "define"), ("asm", ".s", "ret"), ("control", ".control", "terminate")]:
            folder = self.dir / target
            out = self.l3c("emit", path, "--target", target, "-o", folder).out
            names = units if target == "control" else [*kernels, *(f"control.{unit}" for unit in units)]
            for name in names:
                self.assertIn(sign, (folder / (name + suffix)).read_text())
            self.assertEqual(sorted(out.split()), sorted(map(str, folder.iterdir())))
            # Of any layer, the same.
            again = self.dir / f"{target}-again"
            self.l3c("emit", MNIST, "--target", target, "-o", again)
            for file in folder.iterdir():
                self.assertEqual(file.read_text(), (again / file.name).read_text(), file.name)
        # A control unit's text is the plan's.
        self.assertIn((self.dir / "control/train.control").read_text().strip(), plan)

    def test_json_and_errors(self):
        events = self.l3c("emit", MNIST, "--target", "control", "-o", self.dir / "c", "--json").events()
        self.assertEqual({"event": "done", "ok": True}, events[-1])
        self.assertEqual({"file"}, {event["event"] for event in events[:-1]})
        self.write("file", "")
        self.assertIn("cannot make the folder",
                      self.l3c("emit", MNIST, "--target", "asm", "-o", self.dir / "file", code=1).err)
        self.l3c("emit", MNIST, "--target", "ptx", "-o", self.dir / "p", code=2)


if __name__ == "__main__":
    unittest.main()
