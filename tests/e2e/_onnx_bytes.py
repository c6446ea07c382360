"""ONNX messages as bytes, without a package: hostile ones too, and in a small process.

Numbers of fields are those of onnx.proto."""
import struct

FLOAT, INT64, BOOL, FLOAT8E4M3FN, INT4 = 1, 7, 9, 17, 22


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    """An int, a float, a text, bytes (a message too), or a list of them."""
    if isinstance(value, (list, tuple)):
        return b"".join(field(number, v) for v in value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(pairs):
    return b"".join(field(number, value) for number, value in pairs)


class Graph(bytes):
    """An attribute of this kind is a graph."""


class Tensor(bytes):
    """And of this kind a tensor."""


def tensor(name, kind, dims, numbers=(), raw=b""):
    typed = {FLOAT: (4, "f"), INT64: (7, "q")}.get(kind)
    if numbers and not raw:
        raw = struct.pack(f"<{len(numbers)}{typed[1]}", *numbers)
    return Tensor(fields([(1, list(dims)), (2, kind), (8, name), (9, raw)]))


def ints(name, *numbers):
    return tensor(name, INT64, [len(numbers)], numbers)


def attribute(name, value):
    kinds = [(Graph, 6, 5), (Tensor, 5, 4), (int, 3, 2), (float, 2, 1), (str, 4, 3)]
    first = value[0] if isinstance(value, list) else value
    for kind, number, code in kinds:
        if isinstance(first, kind):
            if isinstance(value, list):
                number, code = {int: (8, 7), float: (7, 6)}[kind]
            return fields([(1, name), (number, value), (20, code)])
    raise TypeError(name)


def node(op, inputs, outputs, domain="", **attributes):
    return fields([(1, list(inputs)), (2, list(outputs)), (4, op),
                   (5, [attribute(k, v) for k, v in attributes.items()]),
                   (7, [domain] if domain else [])])


def value(name, kind=FLOAT, dims=()):
    """A dimension is a number or a name."""
    shape = fields([(1, [field(2 if isinstance(d, str) else 1, d) for d in dims])])
    return fields([(1, name), (2, field(1, fields([(1, kind), (2, shape)])))])


def graph(nodes, inputs=(), outputs=(), initializers=()):
    return Graph(fields([(1, list(nodes)), (2, "net"), (5, list(initializers)),
                         (11, list(inputs)), (12, list(outputs))]))


def function(name, inputs, outputs, nodes):
    opsets = [fields([(2, 18)]), fields([(1, "local"), (2, 1)])]
    return fields([(1, name), (4, list(inputs)), (5, list(outputs)), (7, list(nodes)),
                   (9, opsets), (10, "local")])


def model(graph_bytes, functions=(), opset=18):
    opsets = [fields([(2, opset)]), fields([(1, "local"), (2, 1)])]
    return fields([(1, 9), (7, graph_bytes), (8, opsets), (25, list(functions))])
