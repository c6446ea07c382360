"""A random ONNX graph that grows node by node; onnxruntime evaluates each node as it is added.

A node that onnxruntime refuses, or whose results are not finite or too large, is not added, so
every graph is valid and every value is known.  Each value has a twin: the same computation, in
which every rounded result is moved by a few units in the last place.  How far the twins part says
how much of a difference rounding can explain, and only values whose twins are equal may reach an
operator with steps (Floor, Less, ArgMax), where a rounding would become a difference of 1.
"""
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
warnings.filterwarnings("ignore")

MOST_ELEMENTS = 4096
LARGEST = {"float32": 1e4, "float64": 1e4, "float16": 200, "int8": 120, "uint8": 250}
EPSILON = {"float32": 2.0**-23, "float64": 2.0**-52, "float16": 2.0**-10}
IR_VERSION = {
    9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10,
    22: 10, 23: 11, 24: 12, 25: 12, 26: 13
}
OPSETS = sorted(IR_VERSION)


class Value:
    def __init__(self, name, array, twin, kind):
        self.name, self.array, self.twin, self.kind = name, array, twin, kind
        self.hidden = False  # a list of axes or sizes, which no other node reads

    @property
    def exact(self):
        return self.twin is self.array

    @property
    def dtype(self):
        return self.array.dtype.name

    @property
    def shape(self):
        return self.array.shape

    @property
    def rank(self):
        return self.array.ndim


def proto_type(array):
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def session_of(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(),
                                        options,
                                        providers=["CPUExecutionProvider"])


def model_of(nodes, inputs, outputs, opset, initializers=(), name="net"):
    graph = helper.make_graph(nodes, name, inputs, outputs, list(initializers))
    sets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=sets, ir_version=IR_VERSION[opset])


class Net:
    def __init__(self, opset, rng):
        self.opset, self.rng = opset, rng
        self.nodes, self.values, self.refused = [], [], {}

    # Randomness.
    def chance(self, p):
        return self.rng.random() < p

    def pick(self, things):
        return things[int(self.rng.integers(len(things)))]

    def integer(self, low, high):
        """In [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def extent(self):
        usual = [1, 1, 2, 2, 3, 3, 4, 5, 7]
        wide = [8, 16, 17, 33]  # what vector instructions take at once, and a rest
        return 0 if self.chance(0.03) else self.pick(wide if self.chance(0.1) else usual)

    def shape(self, rank):
        return tuple(self.extent() for _ in range(rank))

    def axis(self, rank):
        axis = self.integer(0, rank - 1)
        return axis - rank if self.chance(0.4) and self.opset >= 11 else axis

    # Leaves.
    def numbers(self, shape, dtype, low=-3.0, high=3.0):
        if dtype == "bool":
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype.startswith("uint"):
            return self.rng.integers(0, 6, shape).astype(dtype)
        if dtype.startswith("int"):
            return self.rng.integers(-5, 6, shape).astype(dtype)
        grid = 8  # few digits: moves and comparisons meet ties, sums stay near
        return (np.floor(self.rng.uniform(low * grid, high * grid, shape)) / grid).astype(dtype)

    def leaf(self, shape=None, dtype="float32", array=None, kind=None, low=-3.0, high=3.0):
        """A new input, initializer or Constant; sometimes one of before."""
        if array is None:
            same = [
                v for v in self.values if not v.hidden and v.kind != "node" and
                v.shape == tuple(shape) and v.dtype == dtype and low == -3.0 and high == 3.0
            ]
            if same and self.chance(0.3):
                return self.pick(same)
            array = self.numbers(shape, dtype, low, high)
        array = np.asarray(array)
        kind = kind or self.pick(["input", "input", "initializer", "constant"])
        value = Value(f"{kind[0]}{len(self.values)}", array, array, kind)
        self.values.append(value)
        return value

    def known(self, array):
        """A shape, a list of axes: something that must be known before planning."""
        value = self.leaf(array=np.asarray(array), kind=self.pick(["initializer", "constant"]))
        value.hidden = True
        return value

    # What is there.
    def find(self, dtypes, ranks=None, exact=False, test=None):
        """A value of before, or None."""
        found = [
            v for v in self.values if v.dtype in dtypes and (ranks is None or v.rank in ranks) and
            (v.exact or not exact) and not v.hidden and (test is None or test(v))
        ]
        if not found:
            return None
        recent = found[-6:] if self.chance(0.6) else found
        return self.pick(recent)

    def any(self, dtypes=("float32",), ranks=None, exact=False, test=None):
        """A value of before, mostly; else a new leaf."""
        value = self.find(dtypes, ranks, exact, test) if self.chance(0.85) else None
        if value is not None:
            return value
        rank = self.pick(list(ranks)) if ranks else self.integer(0, 4)
        for _ in range(8):
            value = self.leaf(self.shape(rank), self.pick(list(dtypes)))
            if test is None or test(value):
                return value
        return None

    def broadcastable(self, x, exact=False, dtype=None):
        """A value that broadcasts with x."""
        dtype = dtype or x.dtype

        def fits(v):
            try:
                return np.prod(np.broadcast_shapes(x.shape, v.shape)) <= MOST_ELEMENTS
            except ValueError:
                return False

        other = self.find([dtype], exact=exact, test=fits) if self.chance(0.6) else None
        if other is not None:
            return other
        shape = [1 if self.chance(0.3) else e for e in x.shape]
        shape = shape[self.integer(0, len(shape)):] if self.chance(0.4) else shape
        if len(shape) == x.rank and self.chance(0.15):
            shape = [self.extent()] + shape
        return self.leaf(tuple(shape), dtype)

    # Nodes.
    def emit(self, op, inputs, attrs=None, outputs=1, rounds=True, most=None, reads=()):
        """The values of a new node, or None when it is not one for this graph.

        rounds: the results are rounded, so their twins part.  most: of the results; infinity lets
        NaN pass too.  reads: what the node's inner graphs read of this one.
        """
        if any(v is None for v in inputs if not isinstance(v, str)):
            return None
        inputs = [None if isinstance(v, str) else v for v in inputs]
        while inputs and inputs[-1] is None:
            inputs.pop()
        names = [f"n{len(self.nodes)}_{k}" for k in range(outputs)]
        attrs = {k: v for k, v in (attrs or {}).items() if v is not None}
        node = helper.make_node(op, ["" if v is None else v.name for v in inputs],
                                names,
                                name=f"{op}_{len(self.nodes)}",
                                **attrs)
        return self.add([node], inputs + list(reads), rounds, most)

    def round_trip(self, x, number):
        """x cast to a type that numpy lacks, and back."""
        name = f"n{len(self.nodes)}"
        there = helper.make_node("Cast", [x.name], [name + "_t"], name="Cast_" + name, to=number)
        back = helper.make_node("Cast", [name + "_t"], [name + "_0"],
                                name="Back_" + name,
                                to=proto_type(x.array))
        return self.add([there, back], [x], True, None)

    def add(self, nodes, inputs, rounds, most):
        """The values of the last of these nodes."""
        names = list(nodes[-1].output)
        arrays = self.evaluate(nodes, inputs, rounds, most)
        if arrays is None:
            op = nodes[-1].op_type
            self.refused[op] = self.refused.get(op, 0) + 1
            return None
        self.nodes += nodes
        made = [Value(name, a, t, "node") for name, (a, t) in zip(names, arrays)]
        self.values += made
        return made

    def evaluate(self, nodes, inputs, rounds, most):
        feeds = {v.name: v for v in inputs if v is not None}
        infos = [
            helper.make_tensor_value_info(v.name, proto_type(v.array), v.shape)
            for v in feeds.values()
        ]
        outs = [onnx.ValueInfoProto(name=name) for name in nodes[-1].output]
        try:
            session = session_of(model_of(nodes, infos, outs, self.opset))
            results = session.run(None, {n: v.array for n, v in feeds.items()})
            twins = results
            if any(not v.exact for v in feeds.values()):
                twins = session.run(None, {n: v.twin for n, v in feeds.items()})
        except Exception:  # onnxruntime has no base class of its own
            return None
        arrays = []
        for result, twin in zip(results, twins):
            if not self.wanted(result, most) or result.shape != np.shape(twin):
                return None
            size = self.cancelled(nodes[-1].op_type, feeds.values())
            arrays.append((result, self.moved(result, twin, rounds, results is twins, size)))
        return arrays

    @staticmethod
    def cancelled(op, inputs):
        """How large the terms of sums may be that cancel in the result."""
        if op in ("Add", "Sub", "Mul", "Div", "Cast"):
            return 0
        return max((float(np.abs(v.array).max())
                    for v in inputs
                    if v.array.size and v.array.dtype.kind == "f"),
                   default=0)

    def wanted(self, array, most):
        if not isinstance(array, np.ndarray) or array.size > MOST_ELEMENTS:
            return False
        if array.dtype.name not in ("float32", "float64", "float16", "bool", "int8", "uint8",
                                    "int16", "uint16", "int32", "uint32", "int64", "uint64"):
            return False
        if array.size == 0 or array.dtype == bool:
            return True
        if most == np.inf:
            return True
        largest = np.abs(array.astype(np.float64)).max()
        return bool(np.isfinite(largest)) and largest <= (most or
                                                          LARGEST.get(array.dtype.name, 1e4))

    def moved(self, array, twin, rounds, same, cancelled):
        if array.dtype.kind != "f":
            return array if same or np.array_equal(array, twin) else twin
        if not rounds:
            return array if same else twin
        noise = self.rng.choice([-4.0, 4.0], array.shape) * EPSILON[array.dtype.name]
        wide = np.asarray(twin, np.float64)
        return (wide + noise * np.maximum(np.abs(wide), cancelled / 4)).astype(array.dtype)


def tensor_of(value):
    return numpy_helper.from_array(
        np.ascontiguousarray(value.array).reshape(value.shape), value.name)


def reads_of(node):
    """Names that the node needs, those that its inner graphs read included."""
    names = {name for name in node.input if name}
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            inner = attribute.g
            own = {v.name for v in inner.input} | {t.name for t in inner.initializer}
            own |= {name for n in inner.node for name in n.output}
            for n in inner.node:
                names |= reads_of(n) - own
            names |= {v.name for v in inner.output} - own
    return names


class Model:
    """Nodes, leaves and the outputs that are compared; what is written and shrunk."""
    def __init__(self, opset, nodes, values, outputs, named_dims=False):
        self.opset, self.nodes, self.outputs, self.named_dims = opset, nodes, outputs, named_dims
        self.values = {v.name: v for v in values}
        self.prune()

    def prune(self):
        """Leaves out what the outputs do not need."""
        read, nodes = set(self.outputs), []
        for node in reversed(self.nodes):
            if read.intersection(node.output):
                nodes.append(node)
                read |= reads_of(node)
        self.nodes = nodes[::-1]
        made = {name for node in self.nodes for name in node.output}
        self.leaves = [v for v in self.values.values() if v.name in read and v.name not in made]

    def fed(self):
        return [v for v in self.leaves if v.kind in ("input", "node")]

    def proto(self):
        nodes, initializers, inputs = [], [], []
        for v in self.leaves:
            if v.kind == "constant":
                nodes.append(helper.make_node("Constant", [], [v.name], value=tensor_of(v)))
            elif v.kind == "initializer":
                initializers.append(tensor_of(v))
        for v in self.fed():
            dims = [f"d{e}" if self.named_dims and e > 1 else e for e in v.shape]
            inputs.append(helper.make_tensor_value_info(v.name, proto_type(v.array), dims))
        outputs = [
            helper.make_tensor_value_info(name, proto_type(self.values[name].array), None)
            for name in self.outputs
        ]
        return model_of(nodes + list(self.nodes), inputs, outputs, self.opset, initializers)

    def feeds(self):
        return {v.name: v.array for v in self.fed()}

    def judged(self):
        """What onnxruntime gives for the whole, by name; None when it refuses."""
        try:
            return dict(zip(self.outputs, session_of(self.proto()).run(self.outputs, self.feeds())))
        except Exception:
            return None

    def text(self):
        return onnx.printer.to_text(self.proto())


def allowed(value):
    """The largest difference that rounding explains."""
    array = np.asarray(value.array, np.float64)
    twin = np.asarray(value.twin, np.float64)
    if array.size == 0 or value.array.dtype.kind != "f":
        return 0.0
    epsilon = EPSILON.get(value.dtype, 0)
    both = np.isfinite(array) & np.isfinite(twin)
    array, twin = np.where(both, array, 0), np.where(both, twin, 0)
    tiny = float(np.finfo(value.array.dtype).tiny)  # subnormal numbers may be flushed to 0
    return 16 * float(np.abs(array - twin).max()) + 64 * epsilon * float(
        np.abs(array).max()) + 16 * tiny


def difference(value, got):
    """None when `got` is the value within what rounding explains, else what differs."""
    want = value.array
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype.name}{list(got.shape)}, not {want.dtype.name}{list(want.shape)}"
    if want.size == 0:
        return None
    if want.dtype.kind != "f":
        wrong = np.count_nonzero(got != want)
        return f"{wrong} of {want.size} differ" if wrong else None
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0, np.abs(a - b))
    bound = allowed(value)
    if not np.isnan(apart).any() and apart.max() <= bound:
        return None
    return f"differs by {np.nanmax(apart):.3g}, rounding explains {bound:.3g}"
