"""Training under --numerics fast: products of factors rounded to bfloat16, where the CPU has them.

The loss stays within the bound of the class (1e-2 of that of f32 after 500 steps); runs repeat to the
bit; and a plan made where the CPU has such products runs where it has not."""
import os
import unittest

from harness import ROOT, L3cTest

FULL = os.environ.get("L3C_FULL") == "1"
WORKLOADS = ROOT / "bench/workloads"

# As the analytical costs see a CPU that has them, whatever this one is.
SYSTEM = """\
system host {
    node ssd_0 { kind: storage }
    node ram_0 { kind: memory, capacity: 8GB }
    node cpu_0 { kind: compute, isa: x86_64, cores: 2, features: [avx2, avx512f, fma%s] }

    edges {
        ssd_0 -> ram_0  : bandwidth 2GB/s
        ram_0 <-> cpu_0 : bandwidth 25GB/s
    }
}
"""


class Fast(L3cTest):
    def losses(self, workload, steps):
        system = self.write("bf16.l1", SYSTEM % ", avx512bf16")
        return {n: self.run_json(WORKLOADS / workload, "--synthetic", "--steps", steps, "--seed", 3,
                                 "--numerics", n, "--system", system)["loss"] for n in ("reassoc", "fast")}

    def test_loss_of_some_steps(self):
        losses = self.losses("mlp_small_sgd.l2", 60)
        self.assertNotEqual(losses["reassoc"], losses["fast"])
        self.assertAlmostEqual(losses["reassoc"], losses["fast"], delta=1e-2 * losses["reassoc"])

    @unittest.skipUnless(FULL, "500 steps of several workloads")
    def test_loss_of_500_steps(self):
        for workload in ("mlp_small_sgd.l2", "mlp_small_adam.l2", "gpt_small.l2"):
            losses = self.losses(workload, 500)
            self.assertNotEqual(losses["reassoc"], losses["fast"], workload)
            self.assertAlmostEqual(losses["reassoc"], losses["fast"], delta=1e-2 * losses["reassoc"], msg=workload)

    def test_a_plan_is_the_same_program_on_every_cpu(self):
        """Its text runs by the UOps' meaning too, on which the code of each CPU agrees to the bit."""
        plans = {}
        for name, feature in (("with", ", avx512bf16"), ("without", "")):
            system = self.write(f"{name}.l1", SYSTEM % feature)
            plans[name] = self.l3c("lower", WORKLOADS / "mlp_small_sgd.l2", "--to", "l0", "--synthetic",
                                   "--numerics", "fast", "--system", system).out
        self.assertIn("bf16_dot", plans["with"])
        self.assertNotIn("bf16_dot", plans["without"])
        plan = self.write("plan.l0", plans["with"])
        runs = [self.run_json(plan, "--synthetic", "--steps", 5, "--threads", threads) for threads in (1, 2)]
        self.assertEqual(runs[0]["weights_sha256"], runs[1]["weights_sha256"])


if __name__ == "__main__":
    unittest.main()
