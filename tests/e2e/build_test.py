"""l3c build: one executable that trains with the bits of l3c run, and needs nothing of l3c."""

import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import time
import unittest

import harness
from harness import MNIST, ROOT, L3cTest

EXAMPLES = ROOT / "examples"
# A few steps of each kind of program; the nightly test has every example.
FEW = ["mnist/mnist.l3", "methods/phases.l2", "digits/gan.l3", "methods/recurrent.l2"]


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
    def test_same_bits_as_run(self):
        for example in FEW:
            with self.subTest(example):
                spec = EXAMPLES / example
                length = () if example == "methods/phases.l2" else ("--steps", 12)
                expected = self.run_json(spec, *length)
                program = self.build(spec, *length)
                # Its data alone is left: no source, no compiler, no cache, another folder.
                done = self.start(program, "--json", "--threads", 1, env={"PATH": "/none"}).done
                for figure in expected.keys() - {"train_seconds", "samples_per_second", "compile_seconds",
                                                 "peak_rss_bytes", "checkpoint"}:
                    self.assertEqual(expected[figure], done[figure], figure)
                self.assertEqual(expected.keys(), done.keys())
                shutil.rmtree(self.dir / "runs")

    def test_it_stands_alone(self):
        (self.dir / "src").mkdir()
        shutil.copytree(EXAMPLES / "iris", self.dir / "src/iris", symlinks=True)
        spec = self.dir / "src/iris/iris.l3"
        data = ROOT / "data/iris" if (ROOT / "data/iris").is_dir() else EXAMPLES / "iris/data/iris"
        expected = self.run_json(spec, "--data", f"iris={data}", "--epochs", 2)
        program = self.build(spec, "--data", f"iris={data}", "--epochs", 2)
        shutil.rmtree(self.dir / "src")
        done = self.start(program, "--json", "--data", f"iris={data}").done
        self.assertEqual(expected["weights_sha256"], done["weights_sha256"])
        headers = program.read_bytes()
        self.assertNotIn(b"LLVM", headers)
        # No loader and no library: static.
        self.assertNotIn(b"ld-linux", headers)

    def test_the_folder_it_leaves_is_that_of_run(self):
        program = self.build(MNIST, "--steps", 20)
        self.start(program, "-o", "mine")
        self.run_json(MNIST, "--steps", 20, "-o", self.dir / "theirs")
        for name in ("spec.l3", "method.l2", "placement.l1", "plan.l0", "run.json"):
            self.assertEqual((self.dir / "theirs" / name).read_text(), (self.dir / "mine" / name).read_text(),
                             name)
        mine = self.l3c("eval", self.dir / "mine", "--json").done
        theirs = self.l3c("eval", self.dir / "theirs", "--json").done
        self.assertEqual((theirs["accuracy"], theirs["weights_sha256"]),
                         (mine["accuracy"], mine["weights_sha256"]))

    def test_length_and_seed_as_for_a_plan(self):
        program = self.build(MNIST)
        plan = self.write("plan.l0", self.l3c("lower", MNIST, "--to", "l0").out)
        expected = self.run_json(plan, "--steps", 15, "--seed", 4)
        done = self.start(program, "--json", "--steps", 15, "--seed", 4).done
        self.assertEqual((15, expected["weights_sha256"]), (done["steps"], done["weights_sha256"]))

    def test_a_run_goes_on_in_either(self):
        program = self.build(MNIST, "--steps", 400)
        whole = self.run_json(MNIST, "--steps", 400)["weights_sha256"]
        for resume in ([program], [harness.L3C, "run"]):
            folder = self.dir / f"cut-{len(resume)}"
            run = subprocess.Popen([program, "-o", folder, "--threads", "1"], cwd=self.dir,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while not (folder / "events.jsonl").exists() or "step" not in (folder / "events.jsonl").read_text():
                self.assertIsNone(run.poll())
                time.sleep(0.002)
            run.send_signal(signal.SIGINT)
            out, _ = run.communicate(timeout=60)
            if run.returncode == 0:
                self.skipTest("too fast to be interrupted")
            self.assertEqual(130, run.returncode)
            self.assertIn(f"continue with: {program} --resume {folder}", out)
            done = subprocess.run([*resume, "--resume", folder, "--json"], cwd=self.dir, capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(0, done.returncode, done.stderr)
            self.assertEqual(whole, json.loads(done.stdout.splitlines()[-1])["weights_sha256"])
        other = self.dir / "other"
        self.run_json(EXAMPLES / "iris/iris.l3", "--steps", 3, "-o", other)
        self.assertIn("holds a run of another plan", self.start(program, "--resume", other, code=1).err)

    def test_it_starts_at_once(self):
        program = self.build(MNIST, "--steps", 1)
        times = []
        for _ in range(9):
            began = time.monotonic()
            self.start(program, "--help")
            times.append(time.monotonic() - began)
        print(f"--help in {min(times) * 1e3:.1f} ms at best, {statistics.median(times) * 1e3:.1f} in the median")
        # The tables are read before the options are.
        self.assertLess(min(times), 0.020)
        done = self.start(program, "--json", "--synthetic").done
        self.assertLess(done["compile_seconds"], 0.020)

    def test_a_cpu_without_its_instructions_is_told(self):
        known = set(pathlib.Path("/proc/cpuinfo").read_text().split())
        absent = next(name for name in ("fma4", "xop", "tbm", "sse4a") if name not in known)
        program = self.build(MNIST, "--steps", 1, "--cpu", f"+sse4.2,+{absent}")
        self.assertIn("Trains", self.start(program, "--help").out)
        result = self.start(program, "--json", code=1)
        self.assertRegex(result.err, rf"error\[environment\]: .*compiled for a CPU with {absent}, which")
        self.assertEqual(["diagnostic", "done"], [event["event"] for event in result.events()])
        self.assertFalse(list(self.dir.glob("runs/*")))

    def test_older_cpus(self):
        program = self.build(MNIST, "--steps", 12, "--cpu", "x86-64-v3")
        loss = self.run_json(MNIST, "--steps", 12)["loss"]
        self.assertAlmostEqual(loss, self.start(program, "--json").done["loss"], delta=1e-3 * loss)

    def test_wrong_use(self):
        program = self.build(MNIST, "--steps", 1)
        for args, message in [
            (("--epoch", 3), "did you mean '--epochs'"),
            (("--search", "off"), "--search shapes the plan, which is part of this program"),
            (("--steps", -1), "--steps"),
            (("--steps", 1, "--epochs", 1), "exclude each other"),
            (("--data", "mnist"), "NAME=DIR"),
            (("--resume", "x", "--seed", 1), "goes on with a run as it was begun"),
        ]:
            self.assertIn(message, self.start(program, *args, code=2).err)
        self.assertIn("there is no folder 'x'", self.start(program, "--resume", "x", code=1).err)
        err = self.start(program, "--data", "mnist=/nowhere", code=1).err
        self.assertRegex(err, r"^error\[environment\]: /nowhere")
        for cpu in ("x86-64-v9", "+avx3"):
            self.assertIn("--cpu: there is no", self.l3c("build", MNIST, "-o", self.dir / "x", "--cpu", cpu, code=1).err)
        self.assertIn("cannot write", self.l3c("build", MNIST, "-o", self.dir / "no/such", code=1).err)
        self.l3c("build", MNIST, code=2)

    def test_damage_is_told(self):
        program = self.build(MNIST, "--steps", 1)
        whole = program.read_bytes()
        at = whole.index(b"images")
        program.write_bytes(whole[:at - 8] + b"\xff" * 8 + whole[at:])
        self.assertIn("this program is damaged", self.start(program, code=1).err)

    def test_the_same_program_twice(self):
        one = self.build(MNIST, name="one").read_bytes()
        self.assertEqual(one, self.build(MNIST, name="two").read_bytes())

    def test_tools_see_its_code(self):
        program = self.build(MNIST)
        readelf = shutil.which("readelf")
        if readelf is None:
            self.skipTest("no readelf")
        sections = subprocess.run([readelf, "-SlW", program], capture_output=True, text=True)
        self.assertEqual("", sections.stderr)
        self.assertRegex(sections.stdout, r"\.text\.l3c .* AX ")
        self.assertRegex(sections.stdout, r"\.rodata\.l3c_plan .* A ")


@unittest.skipUnless(os.environ.get("L3C_FULL") == "1", "at length in the nightly preset")
class EveryExample(Program):
    def test_same_bits_as_run(self):
        done = 0
        for spec in sorted([*EXAMPLES.glob("*/*.l3"), *EXAMPLES.glob("*/*.l2")]):
            with self.subTest(spec.relative_to(EXAMPLES)):
                expected = self.run_json(spec, timeout=1200)["weights_sha256"]
                program = self.build(spec)
                found = self.start(program, "--json", timeout=1200).done["weights_sha256"]
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
            names = units if target == "control" else kernels
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
