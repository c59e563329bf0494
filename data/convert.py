#!/usr/bin/env python3
"""Makes the small data sets of the examples from their originals: data/convert.py ORIGINALS [OUT].

ORIGINALS holds iris/iris.csv, digits/digits.csv.gz, sunspots/sunspots.csv, co2/co2.csv,
karate/edges.csv with karate/nodes.csv, and shakespeare/input.txt.gz, as their publishers give them
(data/README.md). Everything drawn at random comes from one seed, so that the same files come out.
"""

import csv
import gzip
import json
import pathlib
import random
import struct
import sys

ORIGINALS = pathlib.Path(sys.argv[1])
OUT = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(__file__).parent


def idx(path, rows, shape):
    """Unsigned bytes, one row a sample."""
    header = struct.pack(">HBB", 0, 8, 1 + len(shape))
    header += b"".join(struct.pack(">I", n) for n in (len(rows), *shape))
    body = b"".join(bytes(row) for row in rows)
    path.write_bytes(gzip.compress(header + body, mtime=0))


def write(name, splits, shapes, scales):
    """splits: split → field → rows of bytes."""
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {}
    for split, fields in splits.items():
        for field, rows in fields.items():
            file = f"{split}.{field}.idx.gz"
            idx(folder / file, rows, shapes[field])
            entry = {"file": file, "format": "idx"}
            if field in scales:
                entry["scale"] = scales[field]
            manifest.setdefault(split, {})[field] = entry
    (folder / "dataset.json").write_text(json.dumps(manifest, indent=2) + "\n")


def iris(draw):
    rows = list(csv.reader((ORIGINALS / "iris/iris.csv").open()))[1:]
    species = sorted({row[4] for row in rows})
    draw.shuffle(rows)
    folder = OUT / "iris"
    folder.mkdir(parents=True, exist_ok=True)
    for split, part in (("train", rows[:120]), ("test", rows[120:])):
        (folder / f"{split}.measures.csv").write_text(
            "".join(",".join(row[:4]) + "\n" for row in part))
        (folder / f"{split}.species.csv").write_text(
            "".join(f"{species.index(row[4])}\n" for row in part))


def read_digits():
    with gzip.open(ORIGINALS / "digits/digits.csv.gz", "rt") as file:
        rows = [row for row in csv.reader(file) if row[0].strip("-").isdigit()]
    return [([int(v) for v in row[:64]], int(row[64])) for row in rows]


def digits(draw):
    rows = read_digits()
    splits = {}
    for split, part in (("train", rows[:1500]), ("test", rows[1500:])):
        splits[split] = {
            "image": [image for image, _ in part],
            "label": [[label] for _, label in part],
            # What a generator starts from, and the image with a third of its pixels wiped out.
            "noise": [[draw.randrange(256) for _ in range(16)] for _ in part],
            "worn": [[0 if draw.random() < 1 / 3 else v for v in image] for image, _ in part],
        }
    write("digits", splits, {"image": (8, 8), "label": (1,), "noise": (16,), "worn": (8, 8)},
          {"image": 1 / 16, "worn": 1 / 16, "noise": 1 / 256})


def pairs(draw):
    rows = read_digits()
    splits = {}
    for split, part, count in (("train", rows[:1500], 800), ("test", rows[1500:], 150)):
        by_label = {}
        for image, label in part:
            by_label.setdefault(label, []).append(image)
        fields = {"anchor": [], "same": [], "other": []}
        for image, label in part[:count]:
            fields["anchor"].append(image)
            fields["same"].append(draw.choice(by_label[label]))
            wrong = draw.choice([other for other in sorted(by_label) if other != label])
            fields["other"].append(draw.choice(by_label[wrong]))
        splits[split] = fields
    write("pairs", splits, {field: (8, 8) for field in ("anchor", "same", "other")},
          {field: 1 / 16 for field in ("anchor", "same", "other")})


def sunspots():
    """Windows of 24 years and the year after, in units of 100 spots."""
    rows = list(csv.reader((ORIGINALS / "sunspots/sunspots.csv").open()))[1:]
    series = [float(row[1]) / 100 for row in rows]
    windows = [(series[i:i + 24], series[i + 24]) for i in range(len(series) - 24)]
    folder = OUT / "sunspots"
    folder.mkdir(parents=True, exist_ok=True)
    for split, part in (("train", windows[:-45]), ("test", windows[-45:])):
        (folder / f"{split}.past.csv").write_text(
            "".join(",".join(f"{v:g}" for v in past) + "\n" for past, _ in part))
        (folder / f"{split}.next.csv").write_text("".join(f"{v:g}\n" for _, v in part))


def co2():
    """A stream: how much each month's mean has grown over the month before, and the month after's."""
    months = {}
    for date, ppm in list(csv.reader((ORIGINALS / "co2/co2.csv").open()))[1:]:
        if ppm:
            months.setdefault(date[:7], []).append(float(ppm))
    # Months of 1958 and the first of 1964 have no measurement: the stream starts after them.
    means = [sum(values) / len(values) for month, values in sorted(months.items()) if month > "1964-04"]
    growth = [after - before for before, after in zip(means, means[1:])]
    folder = OUT / "co2"
    folder.mkdir(parents=True, exist_ok=True)
    for split, part in (("train", growth[:-109]), ("test", growth[-109:])):
        (folder / f"{split}.growth.csv").write_text("".join(f"{v:.3f}\n" for v in part[:-1]))
        (folder / f"{split}.next.csv").write_text("".join(f"{v:.3f}\n" for v in part[1:]))


def karate():
    """One sample, the club: who each of the 34 is, and which side each took; 255 is not told.

    Only the sides of the two who fell out are told for training.
    """
    nodes = list(csv.reader((ORIGINALS / "karate/nodes.csv").open()))[1:]
    sides = [int(club != "Mr. Hi") for _, club in nodes]
    told = [side if n in (0, 33) else 255 for n, side in enumerate(sides)]
    who = [int(a == b) for a in range(34) for b in range(34)]
    write("karate",
          {"train": {"who": [who], "side": [told]}, "test": {"who": [who], "side": [sides]}},
          {"who": (34, 34), "side": (34,)}, {})


def shakespeare():
    """Lines of 32 characters and the same shifted by one; characters by their place in the alphabet."""
    with gzip.open(ORIGINALS / "shakespeare/input.txt.gz", "rt") as file:
        text = file.read()
    alphabet = sorted(set(text))
    assert len(alphabet) == 65
    codes = [alphabet.index(c) for c in text[: 32 * 4500 + 1]]
    rows = [(codes[i:i + 32], codes[i + 1:i + 33]) for i in range(0, 32 * 4500, 32)]
    splits = {
        split: {"text": [a for a, _ in part], "next": [b for _, b in part]}
        for split, part in (("train", rows[:4000]), ("test", rows[4000:]))
    }
    write("shakespeare", splits, {"text": (32,), "next": (32,)}, {})


def main():
    iris(random.Random(1))
    digits(random.Random(2))
    pairs(random.Random(3))
    sunspots()
    co2()
    karate()
    shakespeare()


main()
