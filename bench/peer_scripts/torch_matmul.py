#!/usr/bin/env python3
"""Times products in PyTorch: `torch_matmul.py THREADS MxKxN …` prints FORM SIZE MICROSECONDS.

torch.mm may call another library than oneDNN, one that makes less of some CPUs; so oneDNN is also called
by its own name, and the faster of both counts. The least of several runs of at least 2 ms each counts,
as in kernel_bench: of the thread's processor time with one thread, of the clock's with more. Those of torch.mm
go into a tensor that is there already.
"""

import sys
import time

import torch


def least(call, clock):
    call()
    calls, best = 1, float("inf")
    for _ in range(12):
        start = clock()
        for _ in range(calls):
            call()
        elapsed = clock() - start
        best = min(best, elapsed / calls)
        if elapsed < 2e-3:
            calls = max(2 * calls, int(2e-3 / best))
    return best


def main():
    threads = int(sys.argv[1])
    clock = time.thread_time if threads == 1 else time.perf_counter
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    onednn = getattr(torch.ops.mkldnn, "_linear_pointwise", None)  # x·wᵀ
    for size in sys.argv[2:]:
        m, k, n = map(int, size.split("x"))
        out = torch.empty(m, n)
        full = lambda rows, columns: torch.full((rows, columns), 0.25)
        forms = (("x*w", full(m, k), full(k, n)), ("xT*w", full(k, m).t(), full(k, n)),
                 ("x*wT", full(m, k), full(n, k).t()))
        for form, a, b in forms:
            seconds = least(lambda: torch.mm(a, b, out=out), clock)
            if onednn:
                w = b.t()
                seconds = min(seconds, least(lambda: onednn(a, w, None, "none", [], ""), clock))
            print(form, size, f"{1e6 * seconds:.3f}", flush=True)


if __name__ == "__main__":
    main()
