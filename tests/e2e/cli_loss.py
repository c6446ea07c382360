"""Each kind of --loss trains and is evaluated, on small text graphs and arrays."""
import json
import math
import struct
import unittest
import zipfile

from _ridge import RidgeTest, npy_bytes


def i64_bytes(dims, values):
    shape = "(" + ", ".join(str(d) for d in dims) + ("," if len(dims) == 1 else "") + ")"
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
            struct.pack(f"<{len(values)}q", *values))


# y = x w + b
LINEAR = """graph linear
  x = input f32[batch,2]
  w = parameter f32[{outputs},2]
  b = parameter f32[{outputs}]
  y = matmul(x, w, b, transpose_b=1)
{end}
"""


class Loss(RidgeTest):
    def write_graph(self, name, outputs, end):
        self.write(name, LINEAR.format(outputs=outputs, end=end))

    def write_data(self, name, **arrays):
        """arrays: field -> (dims, numbers); whole numbers become i64."""
        with zipfile.ZipFile(self.path(name), "w") as archive:
            for field, (dims, values) in arrays.items():
                whole = all(isinstance(v, int) for v in values)
                archive.writestr(field + ".npy",
                                 i64_bytes(dims, values) if whole else npy_bytes(dims, values))

    def points(self, count=64):
        return [math.sin(1.7 * i) for i in range(2 * count)]

    def learn(self, model, data, loss, out="run"):
        """(first loss, last loss, what eval says)."""
        self.ok("train", model, "--data", f"npz:{data}", "--loss", loss, "--batch", "16", "--steps",
                "200", "--lr", "0.1", "--threads", "1", "--out", out,
                "--checkpoint-every", "200", "-q")
        with open(self.path(f"{out}/metrics.jsonl")) as file:
            losses = [json.loads(line)["loss"] for line in file]
        done = self.ok("eval", out, "--data", f"npz:{data}", "--json", "--threads", "1")
        return losses[0], losses[-1], json.loads(done)

    def test_mean_square_error(self):
        self.write_graph("net.ridge", 1, "  output y")
        x = self.points()
        self.write_data("data.npz", x=([64, 2], x), target=(
            [64, 1], [2 * x[2 * i] - x[2 * i + 1] + 0.5 for i in range(64)]))
        first, last, result = self.learn("net.ridge", "data.npz", "mse:y")
        self.assertGreater(first, 0.5)
        self.assertLess(last, 0.01)
        self.assertLess(result["loss"], 0.01)
        self.assertIsNone(result["accuracy"])

    def test_half_parameters_are_kept_in_f32(self):
        """Adam's squares of these gradients, about 1e-5, are 0 in f16; so steps would be 1000 long."""
        self.write("net.ridge", """graph half
  x = input f32[batch,2]
  h = cast(x, to="f16")
  w = parameter f16[1,2]
  z = matmul(h, w, transpose_b=1)
  y = cast(z, to="f32")
  small = constant f32[] [1e-5]
  scaled = mul(y, small)
  loss = reduce_mean(scaled)
  output z
  output loss
""")
        x = self.points()
        self.write_data("data.npz", x=([64, 2], [1 + abs(v) for v in x]))
        self.ok("train", "net.ridge", "--data", "npz:data.npz", "--batch", "16", "--steps", "10",
                "--lr", "1e-3", "--threads", "1", "--out", "run", "-q")
        self.ok("export", "run", "--to", "safetensors", "--out", "w.safetensors", "-q")
        with open(self.path("w.safetensors"), "rb") as file:
            data = file.read()
        start = 8 + struct.unpack("<Q", data[:8])[0]
        self.assertIn('"F32"', data[8:start].decode())
        for value in struct.unpack("<2f", data[start:start + 8]):
            self.assertAlmostEqual(value, -1e-2, delta=1e-3)  # ten steps of the rate
        self.assertIn("rounded to f16 for each step: 1 parameter.",
                      self.ok("plan", "net.ridge", "--batch", "16", "-v"))

    def test_binary_cross_entropy_through_a_sigmoid(self):
        self.write_graph("net.ridge", 1, "  p = sigmoid(y)\n  output p")
        x = self.points()
        self.write_data("data.npz", x=([64, 2], x), target=(
            [64, 1], [float(x[2 * i] > x[2 * i + 1]) for i in range(64)]))
        first, last, result = self.learn("net.ridge", "data.npz", "bce:p")
        self.assertAlmostEqual(first, math.log(2), delta=0.1)
        self.assertLess(last, 0.25)
        self.assertLess(result["loss"], 0.25)

    def test_cross_entropy_leaves_out_ignored_labels(self):
        self.write_graph("net.ridge", 2, "  output y")
        x = self.points()
        labels = [int(x[2 * i] > x[2 * i + 1]) for i in range(64)]
        self.write_data("data.npz", x=([64, 2], x), label=([64], labels))
        self.learn("net.ridge", "data.npz", "cross_entropy:y")
        whole = json.loads(self.ok("eval", "run", "--data", "npz:data.npz", "--json"))
        # With the labels of the second half taken away, the first half alone is the mean.
        self.write_data("half.npz", x=([32, 2], x[:64]), label=([32], labels[:32]))
        self.write_data("holes.npz", x=([64, 2], x), label=([64], labels[:32] + [-100] * 32))
        half = json.loads(self.ok("eval", "run", "--data", "npz:half.npz", "--json"))
        holes = json.loads(self.ok("eval", "run", "--data", "npz:holes.npz", "--json"))
        self.assertAlmostEqual(half["loss"], holes["loss"], places=5)
        self.assertAlmostEqual(half["accuracy"], holes["accuracy"], places=6)
        self.assertNotAlmostEqual(whole["loss"], holes["loss"], places=5)

    def test_labels_of_sequences_and_of_pixels(self):
        pixels = "  t = transpose(y, permutation=[0,3,1,2])\n  output y = t"  # classes second
        for name, dims, end in (("sequence", [5], "  output y"), ("pixels", [3, 4], pixels)):
            places = math.prod(dims)
            shape = ",".join(str(d) for d in dims)
            self.write(f"{name}.ridge", LINEAR.replace("[batch,2]", f"[batch,{shape},2]").format(
                outputs=2, end=end))
            x = self.points(places * 32)
            labels = [int(x[2 * i] > x[2 * i + 1]) for i in range(places * 32)]
            self.write_data("data.npz", x=([32] + dims + [2], x), label=([32] + dims, labels))
            _, last, result = self.learn(f"{name}.ridge", "data.npz", "cross_entropy:y",
                                         out=name)
            self.assertLess(last, 0.3, name)
            self.assertGreater(result["accuracy"], 0.9, name)


if __name__ == "__main__":
    unittest.main()
