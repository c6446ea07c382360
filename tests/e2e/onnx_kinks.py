"""Gradients at kinks and ties are PyTorch's for what its exporters write (docs/design/0018-kinks.md).

A row has a function of PyTorch, the array x it is taken at, the nodes that torch.onnx writes for it
(2.15, both exporters; one row each where they differ), and the gradient of the sum of its results.
The gradients are PyTorch's own, on the CPU in f32.  To compare them again with an installed one:

    RIDGE=ridge python3 tests/e2e/onnx_kinks.py --torch
"""
import math
import struct
import sys
import unittest

from _onnx_bytes import FLOAT, INT64, graph, model, node, tensor, value
from _ridge import RidgeTest, read_npz, write_npz

INF, NAN = math.inf, math.nan
FLOAT16, BFLOAT16 = 10, 16
TOLERANCES = {FLOAT: 1e-6, FLOAT16: 4e-3, BFLOAT16: 2e-2}  # a few roundings
HALF, THIRD, ROOT = 0.5, 1 / 3, math.sqrt(0.5)

TWO = [("Slice", "x", (0,), (3,), (0,)), ("Slice", "x", (3,), (6,), (0,))]  # t1, t2: its halves
SQUARES = [("Reshape", "x", (2, 2))]

# (function of PyTorch, x, nodes, gradient).  A node is an operator, its inputs and attributes: "x",
# the result "tN" of the Nth node, None (absent), a float (a constant of rank 0), a list of floats
# or a tuple of integers (constants of rank 1).
ROWS = [
    ("F.relu(x)", [-1, 0, 1], [("Relu", "x")], [0, 0, 1]),
    ("F.relu6(x)", [-1, 0, 3, 6, 7], [("Clip", "x", 0.0, 6.0)], [0, 0, 1, 0, 0]),
    ("F.hardtanh(x)", [-2, -1, 0, 1, 2], [("Clip", "x", -1.0, 1.0)], [0, 0, 1, 0, 0]),
    ("x.clamp(-1, 1)", [-2, -1, 0, 1, NAN], [("Clip", "x", -1.0, 1.0)], [0, 0, 1, 0, 0]),
    ("x.clamp(min=0)", [-1, 0, 1], [("Clip", "x", 0.0)], [0, 0, 1]),
    ("x.clamp(min=0)", [-1, 0, 1], [("Max", "x", 0.0)], [0, 0, 1]),
    ("x.clamp(max=1)", [0, 1, 2], [("Clip", "x", None, 1.0)], [1, 0, 0]),
    ("x.clamp(max=1)", [0, 1, 2], [("Min", "x", 1.0)], [1, 0, 0]),
    ("F.hardsigmoid(x)", [-4, -3, 0, 3, 4], [("HardSigmoid", "x", {"alpha": 1 / 6})],
     [0, 0, 1 / 6, 0, 0]),
    ("F.hardswish(x)", [-4, -3, 0, 3, 4], [("HardSwish", "x")], [0, 0, HALF, 1, 1]),
    ("F.leaky_relu(x, 0.25)", [-1, 0, 1], [("LeakyRelu", "x", {"alpha": 0.25})], [0.25, 0.25, 1]),
    ("F.prelu(x[:3], x[3:])", [-1, 0, 1, 0.25],
     [("Slice", "x", (0,), (3,)), ("Slice", "x", (3,), (4,)), ("PRelu", "t1", "t2")],
     [0.25, 0.25, 1, -1]),
    ("F.elu(x, 2.0)", [-1, 0, 1], [("Elu", "x", {"alpha": 2.0})], [2 / math.e, 2, 1]),
    ("F.selu(x)", [-1, 0, 1], [("Selu", "x")], [0.6467686, 1.7580993, 1.0507010]),
    ("F.celu(x, 2.0)", [-1, 0, 1], [("Celu", "x", {"alpha": 2.0})], [math.exp(-0.5), 1, 1]),
    ("F.softshrink(x)", [-1, -HALF, 0, HALF, 1],
     [("Greater", "x", HALF), ("Sub", "x", HALF), ("Where", "t1", "t2", 0.0), ("Less", "x", -HALF),
      ("Add", "x", HALF), ("Where", "t4", "t5", 0.0), ("Add", "t3", "t6")], [1, 0, 0, 0, 1]),
    ("F.softshrink(x)", [-1, -HALF, 0, HALF, 1],
     [("Abs", "x"), ("Greater", "t1", HALF), ("Sign", "x"), ("Mul", "t3", HALF), ("Sub", "x", "t4"),
      ("Mul", "x", 0.0), ("Where", "t2", "t5", "t6")], [1, 0, 0, 0, 1]),
    ("F.hardshrink(x)", [-1, -HALF, 0, HALF, 1],
     [("Greater", "x", HALF), ("Less", "x", -HALF), ("Or", "t1", "t2"), ("Where", "t3", "x", 0.0)],
     [1, 0, 0, 0, 1]),
    ("F.hardshrink(x)", [-1, -HALF, 0, HALF, 1],
     [("Abs", "x"), ("LessOrEqual", "t1", HALF), ("Where", "t2", 0.0, "x")], [1, 0, 0, 0, 1]),
    ("F.threshold(x, 0.5, 0.25)", [0, HALF, 1],
     [("LessOrEqual", "x", HALF), ("Where", "t1", 0.25, "x")], [0, 0, 1]),
    ("x.abs()", [-1, 0, 1], [("Abs", "x")], [-1, 0, 1]),
    ("x.sign()", [-1, 0, 1], [("Sign", "x")], [0, 0, 0]),
    ("x.ceil()", [-1, 0, HALF], [("Ceil", "x")], [0, 0, 0]),
    ("x.floor()", [-1, 0, HALF], [("Floor", "x")], [0, 0, 0]),
    ("x.round()", [-1, HALF, 1.5], [("Round", "x")], [0, 0, 0]),
    ("x.trunc()", [-1, HALF, 1.5],
     [("Abs", "x"), ("Floor", "t1"), ("Sign", "x"), ("Mul", "t2", "t3")], [0, 0, 0]),
    ("x.remainder(2.0)", [-2, 0, 3],
     [("Div", "x", 2.0), ("Floor", "t1"), ("Mul", "t2", 2.0), ("Sub", "x", "t3")], [1, 1, 1]),
    ("torch.where(x > 0, x, 2 * x)", [-1, 0, 1],
     [("Greater", "x", 0.0), ("Mul", "x", 2.0), ("Where", "t1", "x", "t2")], [2, 2, 1]),
    ("torch.where(x > 0, x.sqrt(), torch.zeros(3))", [-1, 0, 4],
     [("Greater", "x", 0.0), ("Sqrt", "x"), ("Where", "t1", "t2", [0.0, 0.0, 0.0])],
     [NAN, NAN, 0.25]),
    ("(x > 0).float() * x", [-1, 0, 1],
     [("Greater", "x", 0.0), ("Cast", "t1", {"to": FLOAT}), ("Mul", "t2", "x")], [0, 0, 1]),
    ("x.sqrt()", [0, 4], [("Sqrt", "x")], [INF, 0.25]),
    ("x.rsqrt()", [0, 4], [("Sqrt", "x"), ("Div", 1.0, "t1")], [-INF, -0.0625]),
    ("x.rsqrt()", [0, 4], [("Sqrt", "x"), ("Reciprocal", "t1")], [-INF, -0.0625]),
    ("x.log()", [0, 1], [("Log", "x")], [INF, 1]),
    ("x ** 0.5", [0, 4], [("Pow", "x", HALF)], [INF, 0.25]),
    ("x ** 0.0", [0, 1], [("Pow", "x", 0.0)], [0, 0]),
    ("x ** 1.0", [0, 1], [("Pow", "x", 1.0)], [1, 1]),
    ("x ** 2.0", [0, 1], [("Pow", "x", 2.0)], [0, 2]),
    ("x ** 3.0", [0, 1], [("Pow", "x", 3.0)], [0, 3]),
    ("x ** -1.0", [0, 1], [("Pow", "x", -1.0)], [-INF, -1]),
    ("x[:3] ** x[3:]", [0, 0, 2, 0, 2, 0], TWO + [("Pow", "t1", "t2")],
     [0, 0, 0, 0, 0, math.log(2)]),
    ("x.norm()", [0, 0, 0], [("ReduceL2", "x", (0,), {"keepdims": 0})], [0, 0, 0]),
    ("x.reshape(2, 2).norm(dim=1)", [0, 0, 1, 1],
     SQUARES + [("ReduceL2", "t1", (1,), {"keepdims": 0})], [0, 0, ROOT, ROOT]),
    ("x.norm(p=1)", [-1, 0, 1], [("ReduceL1", "x", (0,), {"keepdims": 0})], [-1, 0, 1]),
    ("x.norm(p=math.inf)", [-2, 2, 1], [("Abs", "x"), ("ReduceMax", "t1", {"keepdims": 0})],
     [-HALF, HALF, 0]),
    ("F.normalize(x.reshape(2, 2)) * torch.tensor([1.0, 2.0])", [0, 0, 1, 1],
     SQUARES + [("ReduceL2", "t1", (1,), {"keepdims": 1}), ("Clip", "t2", 1e-12),
                ("Expand", "t3", (2, 2)), ("Div", "t1", "t4"), ("Mul", "t5", [1.0, 2.0])],
     [1e12, 2e12, -ROOT / 2, ROOT / 2]),
    ("x[:3] / x[3:]", [0, 1, 1, 0, 0, 2], TWO + [("Div", "t1", "t2")],
     [INF, INF, HALF, NAN, -INF, -0.25]),
    ("(x * torch.tensor([1., 1, 0, 0])).reshape(2, 2).sum(1) / torch.tensor([2., 0])", [1, 2, 3, 4],
     [("Mul", "x", [1.0, 1.0, 0.0, 0.0]), ("Reshape", "t1", (2, 2)),
      ("ReduceSum", "t2", (1,), {"keepdims": 0}), ("Div", "t3", [2.0, 0.0])],
     [HALF, HALF, NAN, NAN]),
    ("(x * torch.tensor([1., 1, 0, 0])).reshape(2, 2).sum(1) / torch.tensor([2., 1e-9])",
     [1, 2, 3, 4],
     [("Mul", "x", [1.0, 1.0, 0.0, 0.0]), ("Reshape", "t1", (2, 2)),
      ("ReduceSum", "t2", (1,), {"keepdims": 0}), ("Div", "t3", [2.0, 1e-9])], [HALF, HALF, 0, 0]),
    ("torch.maximum(x[:3], x[3:])", [1, 2, 3, 2, 2, 2], TWO + [("Max", "t1", "t2")],
     [0, HALF, 1, 1, HALF, 0]),
    ("torch.minimum(x[:3], x[3:])", [1, 2, 3, 2, 2, 2], TWO + [("Min", "t1", "t2")],
     [1, HALF, 0, 0, HALF, 1]),
    ("torch.maximum(x, torch.zeros(3))", [-1, 0, 1], [("Max", "x", [0.0, 0.0, 0.0])],
     [0, HALF, 1]),
    ("x.max()", [1, 2, 2], [("ReduceMax", "x", {"keepdims": 0})], [0, HALF, HALF]),
    ("x.amin()", [1, 1, 2], [("ReduceMin", "x", {"keepdims": 0})], [HALF, HALF, 0]),
    ("x.reshape(1, 2, 2).amax((1, 2))", [1, 3, 3, 3],
     [("Reshape", "x", (1, 2, 2)), ("ReduceMax", "t1", (1, 2), {"keepdims": 0})],
     [0, THIRD, THIRD, THIRD]),
    ("x.reshape(2, 3).max(1)[0]", [1, 2, 2, 3, 3, 3],
     [("Reshape", "x", (2, 3)), ("ReduceMax", "t1", (1,), {"keepdims": 0})], [0, 1, 0, 1, 0, 0]),
    ("x.reshape(2, 3).min(1)[0]", [1, 1, 2, 3, 3, 3],
     [("Reshape", "x", (2, 3)), ("ReduceMin", "t1", (1,), {"keepdims": 0})], [1, 0, 0, 1, 0, 0]),
    ("F.max_pool2d(x.reshape(1, 1, 2, 4), 2)", [1, 1, 3, 3, 1, 1, 3, 2],
     [("Reshape", "x", (1, 1, 2, 4)),
      ("MaxPool", "t1", {"kernel_shape": [2, 2], "strides": [2, 2]})], [1, 0, 1, 0, 0, 0, 0, 0]),
    ("F.max_pool2d(x.reshape(1, 1, 2, 2), 3, 2, 1)", [0, 0, 0, 0],
     [("Reshape", "x", (1, 1, 2, 2)),
      ("MaxPool", "t1", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]})],
     [1, 0, 0, 0]),
    ("F.adaptive_max_pool2d(x.reshape(1, 1, 2, 2), 1)", [0, 1, 1, 1],
     [("Reshape", "x", (1, 1, 2, 2)), ("GlobalMaxPool", "t1")], [0, 1, 0, 0]),
    ("x.prod()", [0, 2, 3], [("ReduceProd", "x", {"keepdims": 0})], [6, 0, 0]),
    ("x.prod()", [0, 0, 3], [("ReduceProd", "x", {"keepdims": 0})], [0, 0, 0]),
    ("F.smooth_l1_loss(x, torch.zeros(3), reduction='sum')", [0, 1, -1],
     [("Abs", "x"), ("Less", "t1", 1.0), ("Mul", "t1", "t1"), ("Mul", "t3", HALF),
      ("Sub", "t1", HALF), ("Where", "t2", "t4", "t5")], [0, 1, -1]),
    ("F.margin_ranking_loss(x, torch.zeros(3), torch.ones(3), 1.0, reduction='sum')", [0, 1, 2],
     [("Neg", "x"), ("Add", "t1", 1.0), ("Clip", "t2", 0.0)], [-1, 0, 0]),
]


def raw_bytes(kind, number):
    if kind == BFLOAT16:  # the upper half of f32
        return struct.pack("<f", number)[2:]
    return struct.pack("<e" if kind == FLOAT16 else "<f", number)


class Builder:
    """One model of all rows, so that few runs are enough; row i has an input xi.

    In 16 bits x is cast before and the results after."""

    def __init__(self, kind):
        self.kind, self.numbers = kind, 0
        self.nodes, self.constants, self.inputs, self.sums = [], [], [], []

    def cast(self, name, kind):
        if self.kind == FLOAT:
            return name
        self.nodes.append(node("Cast", [name], [f"{name}.cast"], to=kind))
        return f"{name}.cast"

    def constant(self, given):
        """Single numbers have names as the exporter makes them: others may be taken for trained."""
        name = f"val_{len(self.constants) + self.numbers}"
        if isinstance(given, float):
            number = tensor(name, self.kind, [], raw=raw_bytes(self.kind, given))
            if self.kind == FLOAT:  # an initializer, else a node: files have both
                self.constants.append(number)
            else:
                self.nodes.append(node("Constant", [], [name], value=number))
            self.numbers += 1
        elif isinstance(given, tuple):
            self.constants.append(tensor(name, INT64, [len(given)], given))
        else:
            self.constants.append(tensor(name, FLOAT, [len(given)], given))
            return self.cast(name, self.kind)
        return name

    def add(self, i, x, nodes):
        self.inputs.append(value(f"x{i}", FLOAT, [len(x)]))
        start = self.cast(f"x{i}", self.kind)
        for n, (op, *operands) in enumerate(nodes, start=1):
            attributes = dict(operands.pop()) if isinstance(operands[-1], dict) else {}
            if op == "Cast":
                attributes["to"] = self.kind
            names = ["" if o is None else
                     start if o == "x" else
                     f"r{i}.{o}" if isinstance(o, str) else self.constant(o) for o in operands]
            self.nodes.append(node(op, names, [f"r{i}.t{n}"], **attributes))
        result = self.cast(f"r{i}.t{len(nodes)}", FLOAT)
        self.nodes.append(node("ReduceSum", [result], [f"s{i}"], keepdims=0))
        self.sums.append(f"s{i}")

    def bytes(self):
        total = node("Sum", self.sums, ["total"])
        return model(graph(self.nodes + [total], self.inputs, [value("total", FLOAT, [])],
                           self.constants))


def near(got, expected, tolerance=1e-6):
    if math.isnan(expected):
        return math.isnan(got)
    return got == expected or abs(got - expected) <= tolerance * abs(expected)


def in_range(row, kind):
    """1e-9 and 1e-12 are 0 in f16."""
    numbers = [o for _, *operands in row[2] for o in operands]
    numbers = [n for o in numbers for n in (o if isinstance(o, list) else [o])]
    return kind != FLOAT16 or not any(isinstance(n, float) and 0 < abs(n) < 1e-4 for n in numbers)


class Kinks(RidgeTest):
    def gradients(self, kind, backend):
        built = Builder(kind)
        rows = [row for row in ROWS if in_range(row, kind)]
        for i, (_, x, nodes, _) in enumerate(rows):
            built.add(i, x, nodes)
        with open(self.path("kinks.onnx"), "wb") as file:
            file.write(built.bytes())
        write_npz(self.path("in.npz"), {f"x{i}": ([len(row[1])], row[1])
                                        for i, row in enumerate(rows)})
        self.ok("grad", "kinks.onnx", "--inputs", "in.npz", "--outputs", "out.npz",
                "--backend", backend)
        gradients = read_npz(self.path("out.npz"))
        return [(row, gradients[f"x{i}"][1]) for i, row in enumerate(rows)]

    def test_gradients_are_those_of_pytorch(self):
        for kind, tolerance in TOLERANCES.items():
            for backend in ("cpu", "reference"):
                for (function, x, nodes, expected), got in self.gradients(kind, backend):
                    with self.subTest(kind=kind, backend=backend, function=function,
                                      last=nodes[-1][0]):
                        same = [near(g, e, tolerance) for g, e in zip(got, expected)]
                        self.assertTrue(all(same), f"at {x}: {list(got)}, PyTorch {expected}")

    def test_a_number_that_is_trained_stays_an_operand_of_max(self):
        """torch.maximum(x, p): a tie half and half, and p learns; only a constant is a clip."""
        nodes = [node("Max", ["x", "limit"], ["y"])]
        with open(self.path("max.onnx"), "wb") as file:
            file.write(model(graph(nodes, [value("x", FLOAT, [3])], [value("y", FLOAT, [3])],
                                   [tensor("limit", FLOAT, [], [0.0])])))
        write_npz(self.path("in.npz"), {"x": ([3], [-1, 0, 1])})
        self.ok("grad", "max.onnx", "--inputs", "in.npz", "--outputs", "out.npz")
        gradients = read_npz(self.path("out.npz"))
        self.assertEqual(gradients["x"][1], (0, HALF, 1))
        self.assertEqual(gradients["limit"][1], (1.5,))


def compare_with_torch():
    import torch  # pylint: disable=import-outside-toplevel
    import torch.nn.functional as F  # pylint: disable=import-outside-toplevel
    wrong = 0
    for function, x, _, expected in ROWS:
        at = torch.tensor([float(v) for v in x], requires_grad=True)
        eval(function, {"torch": torch, "F": F, "math": math, "x": at}).sum().backward()  # pylint: disable=eval-used
        if not all(map(near, at.grad.tolist(), expected)):
            wrong += 1
            print(f"{function} at {x}: PyTorch {at.grad.tolist()}, here {expected}")
    print(f"PyTorch {torch.__version__}: {len(ROWS)} rows, {wrong} differ")
    return wrong != 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--torch"]:
        sys.exit(compare_with_torch())
    unittest.main()
