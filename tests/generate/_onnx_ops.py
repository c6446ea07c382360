"""How each ONNX operator may stand in a random graph: inputs, attributes and extents that it takes.

A maker gets the Net and adds a node, or does not.  Where an operator's form changed with the opset
(axes as attribute or as input), the Net's opset decides.
"""
import math

import numpy as np

FLOATS = ("float32", "float32", "float32", "float64", "float16")
INTS = ("int32", "int64", "int8", "uint8")
NUMBERS = FLOATS + ("int32", "int64")
ANY = NUMBERS + ("bool", "uint8", "int8")
MAKERS = []


def maker(weight=1, since=1):
    def keep(make):
        MAKERS.extend([(make, since)] * weight)
        return make

    return keep


def f(x):
    return float(np.float32(x))


def random_float(g, low, high):
    return f(g.rng.uniform(low, high))


def some_axes(g, rank, negative=True):
    axes = [a for a in range(rank) if g.chance(0.5)]
    g.rng.shuffle(axes)
    return [a - rank if negative and g.opset >= 11 and g.chance(0.3) else a for a in axes]


# Pointwise: operator, dtypes, attributes, whether its inputs must be exact and its results rounded.
SMOOTH = {
    "Sin": 7, "Cos": 7, "Tanh": 6, "Sigmoid": 6, "Exp": 6, "Erf": 9, "Atan": 7, "Sinh": 9,
    "Cosh": 9, "Asinh": 9, "Softplus": 1, "Softsign": 1, "Selu": 6, "Elu": 6, "Celu": 12,
    "HardSwish": 14, "Mish": 18, "Gelu": 20, "Swish": 24, "HardSigmoid": 6, "Tan": 7
}
ATTRS = {
    "Selu": ("alpha", "gamma"), "Elu": ("alpha",), "Celu": ("alpha",),
    "HardSigmoid": ("alpha", "beta")
}


@maker(4)
def smooth(g):
    op = g.pick([o for o, since in SMOOTH.items() if since <= g.opset])
    attrs = {a: random_float(g, 0.1, 1.5) for a in ATTRS.get(op, ()) if g.chance(0.5)}
    if op == "Gelu" and g.chance(0.5):
        attrs["approximate"] = g.pick(["tanh", "none"])
    if op in ("HardSwish", "Selu", "Gelu", "Mish", "Celu", "Swish"):
        # onnxruntime computes f64 with constants of f32.
        return g.emit(op, [g.any(FLOATS[:3] + ("float16",))], attrs)
    if op == "Tan":
        return g.emit(op, [g.any(FLOATS, exact=True, test=lambda v: np.all(np.abs(v.array) < 1))])
    return g.emit(op, [g.any(FLOATS)], attrs)


@maker(1)
def positive(g):
    """Of operators that are defined on a part of the numbers."""
    op, low, high = g.pick([("Sqrt", 0.1, 9), ("Log", 0.1, 9), ("Reciprocal", 0.2, 5),
                            ("Acos", -0.9, 0.9), ("Asin", -0.9, 0.9), ("Acosh", 1.1, 5),
                            ("Atanh", -0.9, 0.9)])
    x = g.any(FLOATS)
    inside = g.find(FLOATS,
                    test=lambda v: v.array.size and v.array.min() > low and v.array.max() < high)
    if inside is None:
        inside = g.leaf(x.shape, x.dtype, low=low, high=high)
    return g.emit(op, [inside])


@maker(3)
def kinked(g):
    op = g.pick([
        "Relu", "Abs", "Neg", "LeakyRelu", "Identity", "Sign", "Floor", "Ceil", "Round",
        "ThresholdedRelu", "Shrink", "IsNaN", "Not", "Dropout", "Clip", "PRelu", "IsInf"
    ])
    since = {"Round": 11, "ThresholdedRelu": 10, "Shrink": 9, "IsNaN": 9, "Sign": 9, "IsInf": 10}
    if since.get(op, 1) > g.opset:
        return None
    if op in ("Relu", "Abs", "Neg", "Identity"):
        return g.emit(op, [g.any(ANY if op == "Identity" else NUMBERS + ("int8",))], rounds=False)
    if op == "Not":
        return g.emit(op, [g.any(("bool",))])
    if op in ("Sign", "Floor", "Ceil", "Round", "IsNaN", "IsInf"):
        return g.emit(op, [g.any(NUMBERS if op == "Sign" else FLOATS, exact=True)], rounds=False)
    if op == "Dropout":
        mask = int(g.opset >= 10 and g.chance(0.3))
        attrs = {"ratio": 0.3} if g.opset < 12 else {}
        return g.emit(op, [g.any(FLOATS)], attrs, 1 + mask, rounds=False)
    if op == "PRelu":
        x = g.any(FLOATS, ranks=(1, 2, 3, 4))
        return g.emit(op, [x, g.leaf(tuple(g.pick([1, e]) for e in x.shape), x.dtype)])
    if op == "Clip":
        return clip(g)
    attrs = {
        "LeakyRelu": {"alpha": random_float(g, -0.5, 1)},
        "ThresholdedRelu": {"alpha": random_float(g, -1, 2)},
        "Shrink": {"lambd": random_float(g, 0, 1), "bias": random_float(g, -1, 1)}
    }[op]
    dtypes = FLOATS[:3] if op == "Shrink" else FLOATS  # onnxruntime computes f64 in f32
    return g.emit(op, [g.any(dtypes, exact=op != "LeakyRelu")], attrs if g.chance(0.8) else {})


def clip(g):
    low, high = sorted((g.integer(-3, 3), g.integer(-3, 3)))
    if g.opset < 11:
        return g.emit("Clip", [g.any(FLOATS[:4])], {"min": f(low), "max": f(high)}, rounds=False)
    x = g.any(FLOATS if g.opset < 12 else NUMBERS)
    bound = lambda v: g.leaf(array=np.array(v, x.dtype),
                             kind=g.pick(["initializer", "constant", "input"]))
    inputs = [x, bound(low) if g.chance(0.7) else "", bound(high) if g.chance(0.7) else ""]
    return g.emit("Clip", inputs, rounds=False)


def fits_integers(x, y, op):
    """No result leaves the range of the dtype: ONNX says nothing of that."""
    if x.dtype.startswith(("int", "uint")):
        a, b = x.array.astype(object), y.array.astype(object)
        r = np.asarray({"Add": lambda: a + b, "Sub": lambda: a - b, "Mul": lambda: a * b}[op]())
        info = np.iinfo(x.dtype)
        return r.size == 0 or (r.min() >= info.min and r.max() <= info.max)
    return True


@maker(6)
def arithmetic(g):
    op = g.pick(["Add", "Sub", "Mul", "Add", "Mul", "Div"])
    x = g.any(NUMBERS + (("uint8", "int8") if g.opset >= 14 else ()))
    if x is None:
        return None
    if op == "Div":
        y = g.leaf(tuple(g.pick([1, e]) for e in x.shape), x.dtype, low=0.5, high=4)
        if np.any(y.array == 0):
            y = g.leaf(array=np.where(y.array == 0, 3, y.array).astype(y.dtype))
        if x.dtype[0] != "f" and np.any(x.array.astype(np.int64) < 0):
            return None  # truncation or floor: implementations differ where ONNX is silent
    else:
        y = g.broadcastable(x)
        if not fits_integers(x, y, op):
            return None
    pair = [x, y] if op == "Div" or g.chance(0.5) or not fits_integers(y, x, op) else [y, x]
    return g.emit(op, pair)


@maker(1)
def many(g):
    op = g.pick(["Max", "Min", "Sum", "Mean"])
    x = g.any(FLOATS if g.opset < 12 or op in ("Sum", "Mean") else NUMBERS)
    inputs = [x] + [g.broadcastable(x) for _ in range(g.integer(0, 2))]
    return g.emit(op, inputs, rounds=op in ("Sum", "Mean"))


@maker(1)
def power(g):
    x = g.any(FLOATS)
    if g.chance(0.5):
        y = g.leaf(array=np.array(g.pick([0, 1, 2, 3]), x.dtype))
        return g.emit("Pow", [x, y])
    x = g.leaf(x.shape, x.dtype, low=0.5, high=3)
    return g.emit("Pow", [x, g.broadcastable(x)])


@maker(1, since=10)
def modulo(g):
    x = g.any(("int32", "int64", "uint8", "int8") + ("float32",), exact=True)
    y = g.leaf(tuple(g.pick([1, e]) for e in x.shape), x.dtype)
    y = g.leaf(array=np.where(y.array == 0, 3, y.array).astype(y.dtype))
    return g.emit("Mod", [x, y], {"fmod": 1 if x.dtype[0] == "f" else g.integer(0, 1)},
                  rounds=False)


@maker(2)
def compare(g):
    op = g.pick(["Less", "Greater", "Equal"] +
                (["LessOrEqual", "GreaterOrEqual"] if g.opset >= 12 else []))
    x = g.any(NUMBERS + (("bool",) if op == "Equal" else ()), exact=True)
    return g.emit(op, [x, g.broadcastable(x, exact=True)])


@maker(1)
def logic(g):
    x = g.any(("bool",))
    return g.emit(g.pick(["And", "Or", "Xor"]), [x, g.broadcastable(x)])


@maker(1, since=11)
def bits(g):
    op = g.pick(["BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"])
    if op == "BitShift":
        x = g.any(("uint8",))
        y = g.leaf(tuple(g.pick([1, e]) for e in x.shape), "uint8")
        return g.emit(op, [x, y], {"direction": g.pick(["LEFT", "RIGHT"])})
    if g.opset < 18:
        return None
    x = g.any(INTS)
    return g.emit(op, [x] if op == "BitwiseNot" else [x, g.broadcastable(x)])


@maker(2, since=9)
def where(g):
    x = g.any(ANY)
    y = g.broadcastable(x)
    c = g.find(("bool",), test=lambda v: fits_together(v, x, y)) or g.leaf(x.shape, "bool")
    return g.emit("Where", [c, x, y], rounds=False)


def fits_together(*values):
    try:
        return math.prod(np.broadcast_shapes(*(v.shape for v in values))) < 2048
    except ValueError:
        return False


@maker(2)
def cast(g):
    to = g.pick(["float32", "float64", "float16", "int32", "int64", "bool", "uint8", "int8"])
    x = g.any(ANY, exact=to[0] != "f")
    if to == "uint8" and x.array.size and x.dtype != "bool" and x.array.min() < 0:
        return None
    number = {
        "float32": 1, "uint8": 2, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
        "float64": 11
    }[to]
    if g.opset >= 15 and g.chance(0.2):
        return g.emit("CastLike", [x, g.leaf((2,), to)])
    return g.emit("Cast", [x], {"to": number})
