"""What the program is made of: no library of NVIDIA's is needed or opened without --device cuda, and the CUDA
backend is small (tools/binary_check.py)."""
import os
import pathlib
import re
import subprocess
import sys
import unittest

from _ridge import FAKE_CUDA, NOT_HERE, RIDGE, SMALL, SOURCE, RidgeTest, build_shim

sys.path.insert(0, os.path.join(SOURCE, "tools"))
import binary_check  # pylint: disable=wrong-import-position


# Runs that ask for no GPU.
NO_GPU = (["--version"], ["models"], ["plan", "mlp"], ["plan", "mlp", "--on", "h100-sxm"],
          ["train", *SMALL, "--steps", "1", "--out", "run"], ["eval", "run", *SMALL[1:3]])
BUILD = os.path.abspath(os.path.join(os.path.dirname(RIDGE), ".."))
UNITS = os.path.join(BUILD, "generated/unity")
OF_CUDA = re.compile("nvidia|cuda|cublas|cudnn|nvrtc|nccl", re.IGNORECASE)


class Binary(RidgeTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shim = build_shim("named_files")

    def check(self, *words):
        """What tools/binary_check.py says of the program: of the backend, and in which bytes."""
        done = subprocess.run([sys.executable, os.path.join(SOURCE, "tools/binary_check.py"), RIDGE, *words],
                              text=True, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        said = re.fullmatch(r"CUDA backend: ([0-2]\.\d\d) MB \((.*)\); libraries of NVIDIA's needed: 0\n", done.stdout)
        self.assertIsNotNone(said, done.stdout)
        return float(said[1]), said[2]

    def test_no_library_of_nvidias_is_needed_and_the_backend_is_below_3_mb(self):
        self.assertRegex(self.check()[1], r"^\d{3,} symbols, ")

    @unittest.skipUnless(os.path.isdir(UNITS), NOT_HERE + "the program is in no build's folder")
    def test_all_object_files_of_the_backend_are_below_3_mb(self):
        """Also what the linker drops.  Each source is in a unit that is counted."""
        size, how = self.check("--objects", BUILD)
        self.assertGreater(size, self.check()[0])
        units = sorted(pathlib.Path(UNITS).glob("ridge_backend_cuda_*.cc"))
        self.assertEqual(how, f"{len(units)} object files")
        counted = [name for unit in units
                   for name in re.findall(r'^#include "(ridge/backend/cuda/.*\.cc)"$', unit.read_text(), re.MULTILINE)]
        sources = [str(path.relative_to(SOURCE)) for path in pathlib.Path(SOURCE, "ridge/backend/cuda").rglob("*.cc")]
        self.assertEqual(sorted(counted), sorted(name for name in sources if not name.endswith("_test.cc")))

    def opened(self, *words):
        """Names of the libraries that a run opens, where it could find all of NVIDIA's."""
        done = self.ridge(*words, env={"RIDGE_CUDA_PATH": FAKE_CUDA, "LD_DEBUG": "files"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return {os.path.basename(name) for name in re.findall(r"file=(\S+)", done.stderr)}

    def test_nothing_of_nvidias_is_opened_without_a_gpu_that_was_asked_for(self):
        for words in NO_GPU:
            opened = self.opened(*words)
            self.assertIn("libc.so.6", opened)
            self.assertEqual(binary_check.nvidia(sorted(opened)), [], words)
            self.assertNotIn("libridge_cudnn.so", opened, words)

    def named(self, *words):
        """Paths that a run opens or looks at, where its variables name folders for CUDA."""
        path = self.path("named")
        done = self.ridge(*words, env={"RIDGE_CUDA_PATH": FAKE_CUDA, "VIRTUAL_ENV": self.path("venv"),
                                       "LD_PRELOAD": self.shim, "NAMED_FILES": path})
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path) as file:
            names = set(file.read().splitlines())
        os.remove(path)
        return names

    def of_cuda(self, name):
        places = (FAKE_CUDA, self.path("venv"), "/proc/driver/nvidia", "/usr/local/cuda")
        return name.startswith(places) or OF_CUDA.search(os.path.basename(name))

    def test_a_start_without_a_gpu_that_was_asked_for_looks_for_nothing(self):
        """So that it takes no longer than one without the backend."""
        for words in NO_GPU:
            named = self.named(*words)
            self.assertEqual([name for name in named if self.of_cuda(name)], [], words)

    def test_a_gpu_that_was_asked_for_is_looked_for(self):
        named = self.named("plan", "mlp:hidden=8", "--device", "cuda")
        self.assertIn(f"{FAKE_CUDA}/libcuda.so.1", named)
        self.assertIn(self.path("venv/lib"), named)

    def test_a_gpu_that_was_asked_for_opens_them(self):
        opened = self.opened("plan", "mlp:hidden=8", "--device", "cuda")
        self.assertLessEqual({"libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13", "libcudnn.so.9"}, opened)


if __name__ == "__main__":
    unittest.main()
