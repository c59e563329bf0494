"""Whatever is written either trains, to finite figures, or is refused with a reason.

L3C_PROGRAMS says how many programs (24; the nightly preset has more), L3C_SEED which.
"""

import json
import math
import os
import random
import re
import unittest

from harness import L3cTest
from random_programs import Method, Specification

PROGRAMS = int(os.environ.get("L3C_PROGRAMS", "24"))
SEED = int(os.environ.get("L3C_SEED", "1"))
REFUSED = re.compile(r"error\[(syntax|safety|consistency|liveness|resource-bound|environment)\]: ")


class RandomPrograms(L3cTest):
    def run_program(self, name, text):
        """True when it trained."""
        path = self.write(name, text)
        result = self.l3c(
            "run",
            path,
            "--synthetic",
            "--steps",
            3,
            "--json",
            "-o",
            self.dir / "run",
            "--overwrite",
            code=None,
            timeout=120,
        )
        self.assertIn(result.code, (0, 1), f"{text}\n{result.out}\n{result.err}")
        if result.code == 1:
            self.assertRegex(result.err, REFUSED, text)
            return False
        done = result.done
        self.assertTrue(math.isfinite(done["train_loss"]), f"{text}\n{json.dumps(done)}")
        return True

    def test_methods_train_or_are_refused(self):
        trained = 0
        for n in range(PROGRAMS):
            with self.subTest(seed=SEED, program=n):
                draw = random.Random(f"method {SEED} {n}")
                trained += self.run_program(f"m{n}.l2", Method(Specification(draw)).program())
        self.assertGreater(trained, PROGRAMS // 6)

    def test_specifications_train_or_are_refused(self):
        trained = 0
        for n in range(PROGRAMS // 2):
            with self.subTest(seed=SEED, program=n):
                draw = random.Random(f"specification {SEED} {n}")
                trained += self.run_program(f"s{n}.l3", Specification(draw).program())
        self.assertGreater(trained, PROGRAMS // 6)


if __name__ == "__main__":
    unittest.main()
