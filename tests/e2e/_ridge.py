"""Runs the program under test; small data files made by hand.  Needs no package."""
import atexit
import json
import os
import random
import shutil
import struct
import subprocess
import tempfile
import unittest
import zipfile

RIDGE = os.environ["RIDGE"]
SOURCE = os.environ.get("RIDGE_SOURCE_DIR", ".")

# A driver of NVIDIA's and its libraries that run on the host, and what lets a GPU be there.
FAKE_CUDA = os.path.abspath(os.path.join(os.path.dirname(RIDGE), "..", "fake_cuda"))
FAKE_GPU = {"RIDGE_CUDA_PATH": FAKE_CUDA, "RIDGE_FAKE_CUDA_DELAY_US": "0"}

# A model and data of which a step takes less than a millisecond.
SMALL = ["mlp:hidden=32", "--data", "synthetic", "--threads", "1"]


NOT_HERE = "not on this machine: "  # begins reasons to skip that nobody can install away


class NoSkips(unittest.TextTestResult):
    """RIDGE_NO_SKIPS=1: a skipped test fails, unless its reason begins with NOT_HERE."""

    def addSkip(self, test, reason):
        if reason.startswith(NOT_HERE):
            super().addSkip(test, reason)
        else:
            error = AssertionError(f"RIDGE_NO_SKIPS: {reason}")
            self.addFailure(test, (AssertionError, error, None))


if "RIDGE_NO_SKIPS" in os.environ:
    unittest.TextTestRunner.resultclass = NoSkips


def environment(extra=None):
    """The caller's, without its RIDGE_* settings; the machine's profile is shared by all tests."""
    result = {k: v for k, v in os.environ.items() if not k.startswith("RIDGE_")}
    result["XDG_CACHE_HOME"] = os.path.join(os.path.dirname(RIDGE), "..", "test-cache")
    result["LC_ALL"] = "C.UTF-8"
    result["RIDGE_RECEIPTS"] = "off"  # what is printed must not depend on earlier runs
    for name in ("NO_COLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "OMP_NUM_THREADS"):
        result.pop(name, None)
    result.update(extra or {})
    return result


class RidgeTest(unittest.TestCase):
    """Each test has an empty folder, where the program runs."""

    maxDiff = None

    @classmethod
    def setUpClass(cls):
        """The machine's profiles are there from now on, so that nobody is told of measuring."""
        for words in ([], ["--threads", "1"]):
            subprocess.run([RIDGE, "plan", "mlp", *words], env=environment(), check=True,
                           capture_output=True)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="ridge-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def ridge(self, *words, env=None, stdin=None, timeout=120, **options):
        """The finished process; its stdout and stderr are texts."""
        return subprocess.run([RIDGE, *words], cwd=self.folder, env=environment(env), text=True,
                              input=stdin, capture_output=True, timeout=timeout, check=False,
                              **options)

    def train_on_gpu(self, out, *words, **variables):
        """The summary of four steps on the driver that runs on the host, in the folder `out`."""
        done = self.ridge("train", *words, "--data", "synthetic", "--steps", "4", "--device",
                          "cuda", "--out", out, env={**FAKE_GPU, **variables})
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path(f"{out}/summary.json")) as file:
            return json.load(file)

    def train_killed(self, *words, kills, seconds, env=None):
        """Trains with the words in the folder `cut`, killed so many times within so many seconds of a
        start (least, most) and resumed until it ends.  The number of kills, and the seed of their
        times."""
        seed = random.randrange(1 << 30)
        chance = random.Random(seed)
        done = 0
        while not os.path.exists(self.path("cut/summary.json")):
            resume = os.path.exists(self.path("cut/options.json"))
            given = ["--resume", "cut", "-q"] if resume else [*words, "--out", "cut"]
            process = self.start("train", *given, env=env)
            try:
                process.communicate(timeout=chance.uniform(*seconds) if done < kills else 60)
                self.assertEqual(process.returncode, 0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                done += 1
        return done, seed

    def start(self, *words, env=None, **options):
        return subprocess.Popen([RIDGE, *words], cwd=self.folder, env=environment(env), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def ok(self, *words, **options):
        """stdout of a run that must succeed."""
        done = self.ridge(*words, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refused(self, code, message, *words, **options):
        """The run ends with this code, and stderr is exactly "ridge: MESSAGE"."""
        done = self.ridge(*words, **options)
        self.assertEqual((done.returncode, done.stderr), (code, f"ridge: {message}\n"),
                         " ".join(words))
        return done

    def fails(self, code, part, *words, **options):
        """The run ends with this code, and a message of ours holds `part`."""
        done = self.ridge(*words, **options)
        self.assertEqual(done.returncode, code, f"{words}: {done.stderr}")
        self.assertIn(part, done.stderr)
        self.assertTrue(done.stderr.startswith("ridge: "), done.stderr)
        return done

    def write(self, name, content):
        with open(self.path(name), "wb" if isinstance(content, bytes) else "w") as file:
            file.write(content)
        return name

    def cut(self, out, keep_step):
        """As if the run had been killed after the checkpoint of that step."""
        os.remove(self.path(f"{out}/summary.json"))
        for name in os.listdir(self.path(f"{out}/checkpoints")):
            if name.startswith("step-") and int(name[5:]) > keep_step:
                shutil.rmtree(self.path(f"{out}/checkpoints/{name}"))

    def read_json(self, name):
        with open(self.path(name)) as file:
            return json.load(file)

    def train(self, *words, steps=20, out="run", **options):
        self.ok("train", *SMALL, "--steps", str(steps), "--out", out, "-q", *words, **options)
        return self.read_json(f"{out}/summary.json")


def build_shim(name):
    """tests/e2e/NAME.c as a library for LD_PRELOAD."""
    shim = os.path.join(os.path.dirname(RIDGE), f"{name}-{os.getpid()}.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim,
                    os.path.join(SOURCE, f"tests/e2e/{name}.c"), "-ldl"], check=True)
    atexit.register(lambda: os.path.exists(shim) and os.remove(shim))
    return shim


def build_failing_disk():
    """A library for LD_PRELOAD: reads of files named *failing* from byte FAIL_AT on give EIO."""
    return build_shim("failing_disk")


def idx_bytes(type_code, dims, data):
    return bytes([0, 0, type_code, len(dims)]) + struct.pack(f">{len(dims)}I", *dims) + data


def write_idx_folder(folder, samples=64, side=28, test_samples=None):
    """A data set as MNIST's files, with four sorts of images; half as many for the test."""
    os.makedirs(folder, exist_ok=True)
    for part, count in (("train", samples), ("t10k", test_samples or samples // 2)):
        images = b"".join(bytes([(i % 4) * 60] * (side * side)) for i in range(count))
        labels = bytes(i % 4 for i in range(count))
        with open(os.path.join(folder, f"{part}-images-idx3-ubyte"), "wb") as file:
            file.write(idx_bytes(8, [count, side, side], images))
        with open(os.path.join(folder, f"{part}-labels-idx1-ubyte"), "wb") as file:
            file.write(idx_bytes(8, [count], labels))


def npy_bytes(dims, floats):
    shape = "(" + ", ".join(str(d) for d in dims) + ("," if len(dims) == 1 else "") + ")"
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
            struct.pack(f"<{len(floats)}f", *floats))


def write_npz(path, arrays):
    """arrays: name -> (dims, floats)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, (dims, floats) in arrays.items():
            archive.writestr(name + ".npy", npy_bytes(dims, floats))


def read_npz(path):
    """name -> (dims, floats); f4 only."""
    result = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            length = struct.unpack("<H", data[8:10])[0]
            header = eval(data[10:10 + length].decode())  # pylint: disable=eval-used
            assert header["descr"] == "<f4", header
            body = data[10 + length:]
            result[name[:-len(".npy")]] = (header["shape"],
                                           struct.unpack(f"<{len(body) // 4}f", body))
    return result
