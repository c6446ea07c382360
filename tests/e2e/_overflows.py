"""A network and data whose gradients overflow f16: now and then, and farther each time."""
import json
import random
import struct

from _ridge import RidgeTest, write_npz

# Products that are worth casts, and gradients as large as the targets are.
NET = """graph net
  x = input f32[batch,64]
  t = input f32[batch]
  w1 = parameter f32[128,64] init=uniform(0.1)
  w2 = parameter f32[128,128] init=uniform(0.1)
  w3 = parameter f32[1,128] init=uniform(0.1)
  h1 = matmul(x, w1, transpose_b=1)
  r1 = relu(h1)
  h2 = matmul(r1, w2, transpose_b=1)
  r2 = relu(h2)
  y = matmul(r2, w3, transpose_b=1)
  p = reshape(y, dims=[-1])
  gap = sub(p, t)
  each = square(gap)
  loss = reduce_mean(each)
  output p
  output loss
"""
SAMPLES = 640


class WithOverflows(RidgeTest):
    net = NET

    def setUp(self):
        super().setUp()
        self.write("net.ridge", self.net)
        draw = random.Random(1)
        x = [draw.uniform(-1, 1) for _ in range(SAMPLES * 64)]
        # One sample in 64 is far away, each farther than the one before.
        t = [draw.uniform(-1, 1) * (3000 * 1.6 ** (i // 64) if i % 64 == 5 else 1)
             for i in range(SAMPLES)]
        t = [struct.unpack("f", struct.pack("f", value))[0] for value in t]
        write_npz(self.path("data.npz"), {"x": ((SAMPLES, 64), x), "t": ((SAMPLES,), t)})

    def run_net(self, out, *words, precision="f16", steps=40, **options):
        done = self.ridge("train", "net.ridge", "--data", "npz:data.npz", "--batch", "64",
                          "--steps", str(steps), "--threads", "1", "--slices", "1", "--lr",
                          "0.0001", "--precision", precision, "--out", out, *words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.read_json(out + "/summary.json"), done

    def metrics(self, out):
        with open(self.path(out + "/metrics.jsonl"), encoding="utf-8") as file:
            return [json.loads(line) for line in file]
