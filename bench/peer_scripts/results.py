"""Tables and a plot of what bench/peers measured: the objects that it prints with --json."""

import html
import math
import statistics

import workloads

SYSTEMS = ("l3c", "l3c fast", "torch", "torch.compile", "jax", "tinygrad")
TITLES = {"l3c": "l3c", "l3c fast": "l3c fast", "torch": "torch eager", "torch.compile": "torch.compile", "jax": "JAX jit",
          "tinygrad": "tinygrad"}
COLOURS = {"l3c": "#d62728", "l3c fast": "#9467bd", "torch": "#ff9e1b", "torch.compile": "#8c564b", "jax": "#1f77b4",
           "tinygrad": "#7f7f7f"}
MEASURES = (("step_ms", "step time, ms"), ("first_step_s", "first step, s"),
            ("peak_rss_bytes", "peak memory, MB"))


def by_workload(rows):
    """{ workload: { system: row } } in the order in which they came."""
    found = {}
    for row in rows:
        found.setdefault(row["workload"], {})[row["system"]] = row
    return found


def figure(value):
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def cell(row, key):
    if row is None:
        return "–"
    if "skipped" in row:
        return "skipped"
    if "error" in row:
        return "failed"
    return figure(row[key] / 1e6 if key == "peak_rss_bytes" else row[key])


def ratio(systems, key):
    """The best peer's figure over l3c's in f32: above 1 l3c is ahead. None where one has none."""
    ours = systems.get("l3c", {}).get(key)
    peers = [row[key] for name, row in systems.items() if not name.startswith("l3c") and key in row]
    return min(peers) / ours if ours and peers else None


def tables(rows):
    found = by_workload(rows)
    present = [s for s in SYSTEMS if any(s in systems for systems in found.values())]
    text = []
    for key, title in MEASURES:
        text += [f"| {title} | " + " | ".join(TITLES[s] for s in present) + " | best peer / l3c |",
                 "|---" * (len(present) + 2) + "|"]
        ratios = []
        for name, systems in found.items():
            r = ratio(systems, key)
            cells = " | ".join(cell(systems.get(s), key) for s in present)
            text.append(f"| {workloads.title_of(name)} | {cells} | {f'{r:.2f}' if r else '–'} |")
            ratios += [r] if r else []
        if len(ratios) > 1:
            text.append(f"\ngeometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.2f}")
        text.append("")
    errors = [r for r in rows if "error" in r]
    text += [f"failed: {r['workload']} in {r['system']}: {r['error']}" for r in errors]
    return "\n".join(text).rstrip()


def plot(rows):
    """An SVG of three panels with logarithmic axes: a line a workload, a dot a system."""
    found = by_workload(rows)
    left, width, line, top = 340, 300, 24, 60
    bottom = top + line * len(found)
    body = []

    def label(x, y, text, anchor="start", size=12):
        body.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">'
                    f"{html.escape(text)}</text>")

    for i, system in enumerate(SYSTEMS):
        body.append(f'<circle cx="{20 + 130 * i}" cy="20" r="5" fill="{COLOURS[system]}"/>')
        label(30 + 130 * i, 24, TITLES[system])
    for i, name in enumerate(found):
        label(left - 20, top + line * i + 16, workloads.title_of(name), "end")
    for panel, (key, title) in enumerate(MEASURES):
        x0 = left + panel * (width + 40)
        scale = 1e-6 if key == "peak_rss_bytes" else 1
        values = [row[key] * scale for row in rows if row.get(key, 0) > 0]
        low = math.floor(math.log10(min(values))) if values else 0
        high = max(low + 1, math.ceil(math.log10(max(values)))) if values else 1
        place = lambda v: x0 + width * (math.log10(v) - low) / (high - low)
        label(x0 + width / 2, top - 14, title, "middle", 13)
        for decade in range(low, high + 1):
            x = place(10.0**decade)
            body.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top - 6}" y2="{bottom}" stroke="#ccc"/>')
            label(x, bottom + 16, f"{10.0**decade:g}", "middle", 11)
        for i, systems in enumerate(found.values()):
            y = top + line * i + 12
            for system, row in systems.items():
                if row.get(key, 0) > 0:
                    value = row[key] * scale
                    body.append(
                        f'<circle cx="{place(value):.1f}" cy="{y}" r="5" fill="{COLOURS[system]}" '
                        f'fill-opacity="0.85"><title>{TITLES[system]}: {figure(value)}</title></circle>')
    whole = left + 3 * (width + 40)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="{bottom + 30}" '
            f'font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>\n'
            + "\n".join(body) + "\n</svg>\n")
