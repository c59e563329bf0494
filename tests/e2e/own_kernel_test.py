"""Kernels of one's own (#[l0::kernel]): LLVM's IR and shared objects in place of a kernel's UOps."""

import os
import random
import re
import shutil
import struct
import subprocess
import unittest

from harness import ROOT, L3cTest, idx

PLAN = ROOT / "tests/layers/l0/plan/linear.l0"
HAND = ROOT / "tests/layers/l1/programs/hand.l1"
DFA = ROOT / "examples/methods/dfa.l2"
SIGNATURE = "(in f32 [8], in f32 [8], in f32 [8], out f32 [8])"

# e = (p - y) · m, block by block: the UOps of kernel `error` in linear.l0.
IR = """\
@NAME_signature = constant [LENGTH x i8] c"SIGNATURE CLASS\\00"

define void @NAME(ptr %buffers, i64 %first, i64 %last) {
entry:
  %p = load ptr, ptr %buffers
  %y_at = getelementptr ptr, ptr %buffers, i64 1
  %y = load ptr, ptr %y_at
  %m_at = getelementptr ptr, ptr %buffers, i64 2
  %m = load ptr, ptr %m_at
  %e_at = getelementptr ptr, ptr %buffers, i64 3
  %e = load ptr, ptr %e_at
  %some = icmp slt i64 %first, %last
  br i1 %some, label %body, label %end
body:
  %i = phi i64 [ %first, %entry ], [ %next, %body ]
  %p_i = getelementptr float, ptr %p, i64 %i
  %y_i = getelementptr float, ptr %y, i64 %i
  %m_i = getelementptr float, ptr %m, i64 %i
  %e_i = getelementptr float, ptr %e, i64 %i
  %0 = load float, ptr %p_i
  %1 = load float, ptr %y_i
  %2 = fsub float %0, %1
  %3 = load float, ptr %m_i
  %4 = fmul float %2, %3
  store float %4, ptr %e_i
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %last
  br i1 %more, label %body, label %end
end:
  ret void
}
"""

C = """\
#include <stdint.h>
const char NAME_signature[] = "SIGNATURE CLASS";
void NAME(void* const* buffers, int64_t first, int64_t last) {
  const float* p = buffers[0];
  const float* y = buffers[1];
  const float* m = buffers[2];
  float* e = buffers[3];
  for (int64_t i = first; i < last; ++i) BODY
}
"""
BODY = "e[i] = (p[i] - y[i]) * m[i];"


def ir(name="error", how_near="exact", signature=SIGNATURE):
    length = len(f"{signature} {how_near}") + 1
    text = IR.replace("NAME", name).replace("LENGTH", str(length))
    return text.replace("SIGNATURE", signature).replace("CLASS", how_near)


class OwnKernels(L3cTest):
    def setUp(self):
        super().setUp()
        self.assertIn("\nkernel error(", PLAN.read_text())

    def plan(self, annotation, name="plan.l0"):
        text = PLAN.read_text().replace("\nkernel error(", f"\n{annotation}\nkernel error(")
        return self.write(name, text)

    def compiled(self, name, text):
        source = self.write("kernel.c", text)
        compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-ffp-contract=off", "-o",
                        self.dir / name, source, "-lm"], check=True)
        return self.dir / name

    def shared_object(self, name="fast.so", body=BODY, how_near="exact", signature=SIGNATURE,
                      symbol="error"):
        text = C.replace("NAME", symbol).replace("CLASS", how_near).replace("SIGNATURE", signature)
        return self.compiled(name, text.replace("BODY", body))

    def weights(self, plan, *args):
        return self.run_json(plan, "--synthetic", *args)["weights_sha256"]

    def refused(self, plan, words, *args):
        err = self.l3c("check" if not args else args[0], plan, *args[1:], code=1).err
        self.assertIn(words, err)
        self.assertRegex(err, r"plan\.l0:\d+:\d+: error\[")
        self.assertIn("#[l0::kernel", err)
        return err

    def test_ir_gives_the_bits_of_the_uops_and_becomes_part_of_the_program(self):
        wanted = self.weights(PLAN)
        self.write("error.ll", ir())
        plan = self.plan('#[l0::kernel("error.ll")]')
        self.assertEqual(wanted, self.weights(plan))
        # The interpreter runs the UOps.
        self.assertEqual(self.weights(PLAN, "--engine", "interpreter"),
                         self.weights(plan, "--engine", "interpreter"))
        # The plan that is printed is complete by itself.
        (self.dir / "away").mkdir()
        self.l3c("lower", plan, "--to", "l0", "-o", self.dir / "away/printed.l0")
        (self.dir / "error.ll").unlink()
        printed = self.dir / "away/printed.l0"
        text = printed.read_text()
        self.assertIn("code error : llvm error {", text)
        self.assertNotIn("#[", text)
        self.assertEqual(wanted, self.weights(printed))
        self.l3c("lower", printed, "--to", "l0", "-o", self.dir / "again.l0")
        self.assertEqual(text, (self.dir / "again.l0").read_text())
        # It is what runs: another constant in it is another result.
        changed = text.replace("fsub float", "fadd float")
        self.assertIn("another 'e' than the UOps",
                      self.l3c("check", self.write("changed.l0", changed), code=1).err)
        self.l3c("build", printed, "-o", self.dir / "train")
        done = subprocess.run([self.dir / "train", "--synthetic", "--json", "-o", self.dir / "built"],
                              capture_output=True, text=True, check=True)
        self.assertIn(wanted, done.stdout)
        self.l3c("emit", printed, "--target", "llvm", "-o", self.dir / "emitted")
        self.assertIn("fsub float", (self.dir / "emitted/error.ll").read_text())

    def test_a_shared_object_gives_the_bits_of_the_uops(self):
        wanted = self.weights(PLAN)
        self.shared_object(symbol="error_of_mine")
        plan = self.plan('#[l0::kernel("fast.so", error_of_mine)]')
        self.assertEqual(wanted, self.weights(plan))
        err = self.l3c("build", plan, "-o", self.dir / "train", code=1).err
        self.assertIn("a program holds all of its code", err)
        # The plan that is printed names the file and what was in it.
        self.l3c("lower", plan, "--to", "l0", "-o", self.dir / "printed.l0")
        self.assertEqual(wanted, self.weights(self.dir / "printed.l0"))
        self.shared_object(symbol="error_of_mine", body="e[i] = m[i] * (p[i] - y[i]);", how_near="fast")
        self.assertIn("another shared object than the one that the plan names",
                      self.l3c("run", self.dir / "printed.l0", "--synthetic", code=1).err)

    def test_code_that_does_what_it_may_not_is_refused(self):
        plan = self.plan('#[l0::kernel("fast.so")]')
        for body, words in (
            ("e[i] = 2 * (p[i] - y[i]) * m[i];", "another 'e' than the UOps: other bits"),
            ("e[i] = first == 0 ? (p[i] - y[i]) * m[i] : 0;", "blocks are computed in other pieces"),
            ("{ e[i] = (p[i] - y[i]) * m[i]; e[8] = 1; }", "it writes past the end of 'e'"),
            ("{ e[i] = (p[i] - y[i]) * m[i]; ((float*)p)[i] = 1; }", "it writes 'p', which it may read"),
            ("e[i] = *(volatile float*)8;", "it ends with signal 11"),
        ):
            with self.subTest(words):
                self.shared_object(body=body)
                self.refused(plan, words)
        self.shared_object(body="e[i] = (p[i] - y[i]) * m[i] * 1.0001f;", how_near="reassoc")
        self.refused(plan, "more than 1e-5 beside it")
        self.shared_object(body="e[i] = (p[i] - y[i]) * m[i] * 1.000001f;", how_near="reassoc")
        self.l3c("check", plan)

    # (a - b) · m over rows, as it stands in hand.l1.
    GAP = """\
    #include <stdint.h>
    const char GAP_signature[] = "(in f32 [8, 1], in f32 [8, 1], out f32 [8, 1]) exact";
    void GAP(void* const* buffers, int64_t first, int64_t last) {
      const float *a = buffers[0], *m = buffers[1];
      float* gap = buffers[2];
      for (int64_t i = 0; i < 8; ++i) gap[i] = a[i] * m[i] FACTOR;
    }
    """

    def test_a_let_of_l1(self):
        rows = random.Random(5)
        rows = [[rows.randrange(256) for _ in range(6)] for _ in range(50)]
        self.write("dots/train.x.idx", idx([v for row in rows for v in row], (50, 6)))
        self.write("dots/train.y.raw", struct.pack("<50f", *[sum(row) / 600 - 0.5 for row in rows]))
        data = ("--data", f"dots={self.dir / 'dots'}")
        text = HAND.read_text()
        plain = self.run_json(HAND, *data)
        self.compiled("gap.so", self.GAP.replace("GAP", "gap").replace("FACTOR", ""))
        annotated = text.replace("let gap =", '#[l0::kernel("gap.so")]\n        let gap =')
        self.assertNotEqual(text, annotated)
        program = self.write("own.l1", annotated)
        own = self.run_json(program, *data)
        self.assertLess(abs(own["loss"] - plain["loss"]), 1e-5 * plain["loss"])
        self.assertEqual(plain["steps"], own["steps"])
        # Nothing is fused with it, and it is what runs.
        self.l3c("lower", program, "--to", "l0", "-o", self.dir / "own.l0")
        plan = (self.dir / "own.l0").read_text()
        self.assertRegex(plan, r"\ncode \w+_gap : object gap at ")
        self.assertRegex(plan, r"kernel \w+_gap\(\w+: in f32 \[8, 1\], \w+: in f32 \[8, 1\], gap: out")
        self.assertEqual(own["weights_sha256"], self.run_json(self.dir / "own.l0", *data)["weights_sha256"])
        # The text of L1 comes back with the annotation.
        self.l3c("lower", program, "--to", "l1", "-o", self.dir / "again.l1")
        printed = (self.dir / "again.l1").read_text()
        self.assertIn(f'#[l0::kernel("{self.dir / "gap.so"}")]', printed)
        self.l3c("lower", self.dir / "again.l1", "--to", "l1", "-o", self.dir / "twice.l1")
        self.assertEqual(printed, (self.dir / "twice.l1").read_text())

        def refused(text, words):
            err = self.l3c("lower", self.write("own.l1", text), "--to", "l0", code=1).err
            self.assertIn(words, err)
            self.assertRegex(err, r"own\.l1:\d+:\d+: error\[")
            self.assertIn("#[l0::kernel", err)

        self.compiled("gap.so", self.GAP.replace("GAP", "gap").replace("FACTOR", "* 2"))
        refused(annotated, "another 'gap' than the UOps")
        refused(annotated.replace("gap.so", "none.so"), "cannot read")
        refused(text.replace("let rows =", '#[l0::kernel("gap.so")]\n        let rows ='), "has no function 'rows'")
        refused(text.replace("let out =", '#[l0::on("gap.so")]\n        let out ='),
                "is no directive of l0")

    def test_a_layer_of_l2(self):
        text = DFA.read_text()
        self.assertEqual(2, text.count("tanh,"))
        annotated = text.replace("linear(64, 48), tanh,", 'linear(64, 48), #[l0::kernel("tanh.so", f)] tanh,')
        self.assertNotEqual(text, annotated)
        program = self.write("own.l2", annotated)
        source = """\
        #include <math.h>
        #include <stdint.h>
        const char f_signature[] = "SIGNATURE reassoc";
        void f(void* const* buffers, int64_t first, int64_t last) {
          const float* x = buffers[0];
          float* y = buffers[1];
          for (int64_t i = 0; i < COUNT; ++i) y[i] = tanhf(x[i]);
        }
        """
        self.compiled("tanh.so", source.replace("COUNT", "0"))
        options = ("--synthetic", "--steps", 20)
        err = self.l3c("run", program, *options, code=1).err
        signature, rows, width = re.search(r"is declared '(\(in f32 \[(\d+), (\d+)\].*?\))'", err).groups()
        count = str(int(rows) * int(width))
        self.compiled("tanh.so", source.replace("COUNT", count).replace("SIGNATURE", signature))
        plain = self.run_json(DFA, *options)
        own = self.run_json(program, *options)
        self.assertLess(abs(own["train_loss"] - plain["train_loss"]), 1e-3 * abs(plain["train_loss"]))
        self.l3c("lower", program, "--to", "l1", "-o", self.dir / "own.l1", *options[:1])
        self.assertIn(f'#[l0::kernel("{self.dir / "tanh.so"}", f, of: [linear1])]',
                      (self.dir / "own.l1").read_text())
        self.compiled("tanh.so", source.replace("COUNT", "1").replace("SIGNATURE", signature))
        err = self.l3c("run", program, *options, code=1).err
        self.assertIn("another 'tanh1' than the UOps", err)
        missing = annotated.replace("tanh.so", "none.so")
        err = self.l3c("run", self.write("own.l2", missing), *options, code=1).err
        self.assertIn("cannot read", err)

    def test_uops_that_mean_something_else_are_refused(self):
        program = self.write("own.l2", DFA.read_text().replace(
            "linear(64, 48), tanh,", 'linear(64, 48), #[l0::kernel("own.uop")] tanh,'))
        err = self.l3c("run", program, "--synthetic", "--steps", 2, code=1).err
        self.assertIn("cannot read", err)
        self.write("own.uop", "kernel own(x: in f32 [32, 48], y: out f32 [32, 48]) {\n axis i : loop 1536\n"
                   " %0 = load x[i]\n store y[i], %0\n}\n")
        err = self.l3c("run", program, "--synthetic", "--steps", 2, code=1).err
        self.assertIn("compute something else than 'tanh1'", err)

    def test_what_does_not_load_is_refused(self):
        self.refused(self.plan('#[l0::kernel("none.so")]'), "cannot read")
        self.write("text.so", "no object")
        self.refused(self.plan('#[l0::kernel("text.so")]'), "is no shared object")
        plan = self.plan('#[l0::kernel("fast.so")]')
        self.shared_object(symbol="other")
        self.refused(plan, "has no function 'error'")
        self.shared_object(signature="(in f32 [8], out f32 [8])")
        self.refused(plan, f"kernel 'error' is declared '{SIGNATURE}'")
        self.shared_object(how_near="close")
        self.refused(plan, "ends with 'close'")
        self.shared_object(body="{ extern float absent(float); e[i] = absent(p[i]); }")
        self.refused(plan, "undefined symbol: absent")
        self.write("error.ll", ir().replace("ret void", "ret i64 0"))
        self.refused(self.plan('#[l0::kernel("error.ll")]'), "the code of kernel 'error': line ")
        self.refused(self.plan('#[l0::kernel("error.ll" error)]'), "the name of a function in it")
        two = PLAN.read_text().replace("\nsequence ", '\ncode error : llvm f { }\ncode error : llvm f { }'
                                       "\n\nsequence ", 1)
        self.assertIn("has two codes", self.l3c("check", self.write("two.l0", two), code=1).err)


if __name__ == "__main__":
    unittest.main()
