"""Reads as much of an L2 file as a peer needs to train the same: rows, network, batch, update, loss.

    read("cnn.l2").network  →  Form("sequential", [Form("conv", [1, 32], {"kernel": 3, …}), …])

Not a second front end: l3c has checked the file by the time that a peer reads it, and a form that
is not known here ends the peer's run by name.
"""

import dataclasses
import pathlib
import re

TOKEN = re.compile(r"\s*([A-Za-z_][\w.]*|-?\d[\w.+-]*|.)", re.S)


@dataclasses.dataclass
class Form:
    name: str
    args: list = dataclasses.field(default_factory=list)
    named: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Field:
    name: str
    shape: tuple  # of one sample
    type: str  # "f32", "u8", …


@dataclasses.dataclass
class Program:
    name: str
    fields: list
    data: str  # its name
    model: str
    input: str
    target: str
    classes: int  # of every output; 0: the output is numbers
    loss: str  # "ce" or "mse"
    batch: int
    network: Form
    update: Form

    def field(self, name):
        return next(f for f in self.fields if f.name == name)


class Reader:
    def __init__(self, text):
        text = re.sub(r"//[^\n]*|^#[^\n]*", "", text, flags=re.M)
        self.tokens = [t for t in TOKEN.findall(text) if not t.isspace()]
        self.at = 0

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected=None):
        token = self.peek()
        if expected is not None and token != expected:
            raise ValueError(f"expected '{expected}', found '{token}'")
        self.at += 1
        return token

    def accept(self, token):
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def values(self, close):
        """Up to `close`: those without a name, and those with."""
        args, named = [], {}
        while not self.accept(close):
            value = self.value()
            if self.accept(":"):
                named[value.name] = self.value()
            else:
                args.append(value)
            self.accept(",")
        return args, named

    def value(self):
        if self.accept("["):
            return self.values("]")[0]
        token = self.take()
        if re.match(r"-?\d", token):
            return float(token) if re.search(r"[.e]", token) else int(token)
        if self.accept("("):
            return Form(token, *self.values(")"))
        if token in ("sequential", "residual") and self.accept("["):
            return Form(token, self.values("]")[0])
        return Form(token)

    def lines(self):
        """{ name: value … } as a dict; a domain may follow its field with spaces around the colon."""
        self.take("{")
        found = {}
        while not self.accept("}"):
            name = self.take()
            self.accept(":")
            value = self.value()
            if self.accept(","):  # `, weight: 1.0` of a loss's term
                self.take("weight")
                self.take(":")
                value.named["weight"] = self.value()
            found[name] = value
        return found


def sample_shape(domain):
    """Of tensor(f32, [28, 28]), sequence(scalar(u8), 64), scalar(f32): extents and element type."""
    if domain.name == "tensor":
        return tuple(domain.args[1]), domain.args[0].name
    if domain.name == "sequence":
        inner, element = sample_shape(domain.args[0])
        return (domain.args[1], *inner), element
    if domain.name == "scalar":
        return (), domain.args[0].name
    raise ValueError(f"domain '{domain.name}' is not known to the peers")


def classes_of(domain):
    if domain.name == "sequence":
        return classes_of(domain.args[0])
    return domain.args[0] if domain.name == "dist" else 0


def read(path):
    reader = Reader(pathlib.Path(path).read_text())
    sections = {}
    while reader.peek():
        kind = reader.take()
        if kind == "goal":
            reader.take(":")
            reader.value()
            continue
        if kind == "methods":
            reader.take("for")
        name = reader.take()
        if kind in sections:
            raise ValueError(f"a second '{kind}': the peers take programs of one")
        sections[kind] = (name, reader.lines())
    data, fields = sections["data"]
    model, contract = sections["model"]
    terms = [t for n, t in sections["loss"][1].items() if n != "combine"]
    methods = sections["methods"][1]
    if len(terms) != 1 or terms[0].named.get("weight", 1) != 1:
        raise ValueError("the peers take a loss of one term of weight 1")
    classes = classes_of(contract["out"])
    owner = data + "."
    target = next(a.name for a in terms[0].args if a.name.startswith(owner))
    loss = methods["loss"].name if "loss" in methods else "ce" if classes else "mse"
    if loss not in ("ce", "mse"):
        raise ValueError(f"loss '{loss}' is not known to the peers")
    return Program(
        name=pathlib.Path(path).stem,
        fields=[Field(n, *sample_shape(d)) for n, d in fields.items()],
        data=data,
        model=model,
        input=contract["in"].name.removeprefix(owner),
        target=target.removeprefix(owner),
        classes=classes,
        loss=loss,
        batch=methods["sample"].named["batch"],
        network=methods["infer"],
        update=methods["update"],
    )


def layers(form):
    """Every layer in the order of the text with the name that l3c gives it: linear1, norm1, …"""
    counts = {}

    def walk(node):
        if node.name in ("sequential", "residual"):
            for part in node.args:
                yield from walk(part)
        else:
            counts[node.name] = counts.get(node.name, 0) + 1
            yield f"{node.name}{counts[node.name]}", node

    return list(walk(form))
