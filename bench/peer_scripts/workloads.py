"""The workloads of bench/peers and bench/ablation, and the folder that each is run in."""

import dataclasses
import pathlib
import shutil
import subprocess

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "workloads"

# In the order of the tables: title, steps of a run, steps of a run with --quick.
WORKLOADS = {
    "mlp_small_adam": ("MLP 784-256-256-10, layer norm, gelu, Adam, batch 128", 200, 100),
    "mlp_small_sgd": ("MLP 784-256-256-10, relu, SGD, batch 128", 200, 100),
    "mlp_1024": ("MLP 784-1024-1024-10, relu, SGD, batch 512", 60, 40),
    "cnn": ("CNN 32-64 3×3, pool, 128, Adam, batch 128", 40, 24),
    "gpt_small": ("GPT 2 layers, 128 wide, 4 heads, 16×64, Adam", 60, 40),
    "gpt": ("GPT 6 layers, 384 wide, 6 heads, 8×256, Adam", 24, 10),
    "gpt2_block": ("GPT-2 block, 768 wide, 12 heads, 4×256, SGD", 30, 14),
    "wide_4096": ("3 × 4096×4096, relu, Adam, batch 16", 30, 14),
    "layer_norm": ("layer norm alone, 4096×768", 60, 40),
    "softmax": ("softmax alone, 4096×512", 60, 40),
    "cross_entropy": ("cross-entropy alone, 2048×1024", 60, 40),
}


# bench/ablation measures these also with --memory at this share of what the plan under egraph takes.
CAPPED = {"gpt": 0.6}


def files():
    return [FOLDER / f"{name}.l2" for name in WORKLOADS]


def title_of(name):
    """`name` may end in "@60%": with that share of its memory."""
    own, at, share = name.partition("@")
    title = WORKLOADS[own][0] if own in WORKLOADS else own
    return f"{title}, {share} of its memory" if at else title


def in_order(names):
    """Those of the tables first."""
    order = list(WORKLOADS)
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def steps_of(name, quick):
    return WORKLOADS.get(name, ("", 30, 20))[2 if quick else 1]


def in_tinygrad(name, asked):
    """tinygrad takes dense layers alone; a file of the user's own is tried."""
    return name.startswith("mlp_small") or (asked and name not in WORKLOADS)


@dataclasses.dataclass
class Job:
    name: str
    file: str
    data: str
    folder: pathlib.Path


def prepare(file, scratch, l3c, python):
    """Rows, placement and text of a program in a folder of their own; RuntimeError with l3c's words."""
    folder = scratch / "job"
    folder.mkdir()
    shutil.copy(file, folder)
    own = folder / file.name
    for command in ([python, str(pathlib.Path(__file__).with_name("make_rows.py")), str(folder)],
                    [l3c, "lower", str(own), "--synthetic", "--to", "l1", "-o", str(folder / "placement.l1")]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[0 if command[0] == l3c else -1][:300])
    data = next(line.split()[1] for line in own.read_text().splitlines() if line.startswith("data "))
    return Job(file.stem, str(own), data, folder)
