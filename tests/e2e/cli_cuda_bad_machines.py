"""Machines that cannot run a GPU, and GPUs that are lost: the sentence, the exit code, and what is left of
the run.  On a driver that runs on the host."""
import glob
import json
import os
import random
import re
import shutil
import unittest

from _ridge import FAKE_CUDA, FAKE_GPU, RidgeTest, build_shim, write_npz

MODEL = ["mlp:hidden=8,layers=1,inputs=12,classes=3", "--data", "synthetic", "--batch", "4",
         "--device", "cuda"]
LIBRARY = os.path.join(FAKE_CUDA, "libcuda.so.1")
LOST = "CUDA_ERROR_LAUNCH_FAILED (719)"
LOST_IN_A_STEP = (rf"^ridge: cuda:0: (cu\w+ failed: {re.escape(LOST)}|"  # cuBLASLt launches, too
                  r"cublasLtMatmul failed: CUBLAS_STATUS_EXECUTION_FAILED \(13\)\. hint: "
                  r"--kernel-launch sync names the node, and compute-sanitizer the kernel)$")
SWEPT = ["--steps", "50", "--checkpoint-every", "5", "--keep", "10"]


class Machine(RidgeTest):
    def told(self, verb, *words, **variables):
        """The exit code and the last line of stderr."""
        done = self.ridge(verb, *MODEL, *words, env={**FAKE_GPU, **variables})
        return done.returncode, done.stderr.splitlines()[-1]

    def both(self, code, sentence, **variables):
        """A training and a plan end alike, and the training leaves no run folder."""
        for verb in ("train", "plan"):
            with self.subTest(sentence, verb=verb):
                words = ["--steps", "4", "--out", "run"] if verb == "train" else []
                self.assertEqual(self.told(verb, *words, **variables), (code, f"ridge: {sentence}"))
        self.assertFalse(os.path.exists(self.path("run")))


class Drivers(Machine):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shim = build_shim("absent_library")

    def test_no_driver(self):
        self.both(6, "no NVIDIA driver: libcuda.so.1 is not found; a GPU's plan can be made here, not "
                     "run. hint: install NVIDIA's driver 580 or newer",
                  RIDGE_CUDA_PATH="", LD_PRELOAD=self.shim, ABSENT="libcuda.so")

    def test_a_folder_without_a_driver(self):
        self.both(6, f"no NVIDIA driver: neither RIDGE_CUDA_PATH ('{self.folder}') nor the system has "
                     "libcuda.so.1; a GPU's plan can be made here, not run. hint: install NVIDIA's "
                     "driver 580 or newer",
                  RIDGE_CUDA_PATH=self.folder, LD_PRELOAD=self.shim, ABSENT="libcuda.so")

    def test_a_folder_that_is_not_there(self):
        absent = self.path("absent")
        self.both(6, f"RIDGE_CUDA_PATH is '{absent}': {absent}: cannot open shared object file: No such "
                     "file or directory. hint: unset RIDGE_CUDA_PATH, and the system's driver is taken",
                  RIDGE_CUDA_PATH=absent)

    def test_a_driver_that_does_not_load(self):
        self.write("libcuda.so.1", "text")
        self.both(6, f"RIDGE_CUDA_PATH is '{self.folder}': {self.folder}/libcuda.so.1: file too short. "
                     "hint: unset RIDGE_CUDA_PATH, and the system's driver is taken",
                  RIDGE_CUDA_PATH=self.folder)

    def fakes(self, *absent):
        """The folder with the libraries of the tests but for these."""
        for name in os.listdir(FAKE_CUDA):
            if name not in absent:
                os.symlink(f"{FAKE_CUDA}/{name}", self.path(name))
        return self.folder

    def test_a_folder_of_libraries_beside_the_systems_driver(self):
        folder = self.fakes("libcuda.so.1")
        system = self.path("system")
        os.mkdir(system)
        os.symlink(LIBRARY, f"{system}/libcuda.so.1")
        for variables in ({"RIDGE_CUDA_PATH": folder, "LD_LIBRARY_PATH": system},
                          {"RIDGE_CUDA_PATH": f"{folder}:{system}"}):
            done = self.ridge("plan", *MODEL, env={**FAKE_GPU, **variables})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"products run on cuBLASLt 13.1.0 ({folder}/libcublasLt.so.13)", done.stderr)

    def test_the_stub_of_a_toolkit(self):
        """Some versions say so when they are asked for theirs, others when they are to begin."""
        shutil.copy(LIBRARY, self.folder)
        for call in ("cuDriverGetVersion:1:34", "cuInit:1:34"):
            self.both(6, f"{self.folder}/libcuda.so.1 is the stub of a CUDA toolkit, for linking "
                         "programs; it drives no GPU. hint: unset RIDGE_CUDA_PATH",
                      RIDGE_CUDA_PATH=self.folder, RIDGE_FAKE_CUDA_FAIL=call)

    def test_a_driver_that_is_too_old(self):
        self.both(6, f"{LIBRARY} is of a driver for CUDA 12.4; ridge needs CUDA 13.0, which driver 580 "
                     "has. hint: install NVIDIA's driver 580 or newer",
                  RIDGE_FAKE_CUDA_VERSION="12040")

    def test_a_driver_of_another_version_than_the_kernels(self):
        self.both(6, "cuInit failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803). hint: restart the machine: "
                     "the kernel has another version of the driver than libcuda",
                  RIDGE_FAKE_CUDA_FAIL="cuInit:1:803")

    def test_no_gpu(self):
        self.both(6, "the NVIDIA driver shows no GPU: CUDA_VISIBLE_DEVICES is ''. hint: unset "
                     "CUDA_VISIBLE_DEVICES", CUDA_VISIBLE_DEVICES="")
        self.both(6, "the NVIDIA driver shows no GPU. hint: nvidia-smi -L lists those that it knows",
                  RIDGE_FAKE_CUDA_FAIL="cuInit:1:100")

    def test_no_nvrtc(self):
        self.both(6, "no NVRTC: libnvrtc.so.13 is not found. hint: pip install nvidia-cuda-nvrtc, or set "
                     "RIDGE_CUDA_PATH to its folder", LD_PRELOAD=self.shim, ABSENT="libnvrtc")

    def doctor_of_nvrtc(self, **variables):
        """The row, and the text and the mend of what is noted of runs on a GPU."""
        env = {**FAKE_GPU, **variables}
        rows = [line for line in self.ridge("doctor", env=env).stdout.splitlines() if line.startswith("NVRTC")]
        probe = json.loads(self.ridge("doctor", "--json", env=env).stdout)
        return ([" ".join(row.split()) for row in rows], probe["cuda"]["nvrtc"],
                [(p["severity"], p["text"], p["mend"]) for p in probe["problems"]
                 if p["subject"] == "--device cuda"])

    def test_doctor_says_of_nvrtc_what_a_run_says(self):
        path = f"{FAKE_CUDA}/libnvrtc.so.13"
        self.assertEqual(self.doctor_of_nvrtc(), ([f"NVRTC 13.0 ({path})"],
                                                  [{"version": "13.0", "path": path}], []))
        absent = {"LD_PRELOAD": self.shim, "ABSENT": "libnvrtc"}
        self.assertEqual(self.doctor_of_nvrtc(**absent), ([], [], [
            ("note", "no NVRTC: libnvrtc.so.13 is not found",
             "pip install nvidia-cuda-nvrtc, or set RIDGE_CUDA_PATH to its folder")]))
        self.assertEqual(self.doctor_of_nvrtc(**absent, CUDA_VISIBLE_DEVICES=""), ([], [], []))

    def test_doctor_finds_nvrtc_in_a_wheel_as_a_run_does(self):
        folder = self.fakes("libnvrtc.so.13")
        wheel = self.path("venv/lib/python3.11/site-packages/nvidia/cu13/lib")
        os.makedirs(wheel)
        os.symlink(f"{FAKE_CUDA}/libnvrtc.so.13", f"{wheel}/libnvrtc.so.13")
        venv = {"RIDGE_CUDA_PATH": folder, "VIRTUAL_ENV": self.path("venv")}
        self.assertEqual(self.doctor_of_nvrtc(**venv)[0], [f"NVRTC 13.0 ({wheel}/libnvrtc.so.13)"])
        done = self.ridge("train", *MODEL, "--steps", "1", "--out", "run", env={**FAKE_GPU, **venv})
        self.assertIn(f"NVRTC 13.0 ({wheel}/libnvrtc.so.13)", done.stderr)

    def test_a_file_that_is_no_nvrtc(self):
        self.fakes("libnvrtc.so.13")
        shutil.copy(f"{FAKE_CUDA}/libcudart.so.13", self.path("libnvrtc.so.13"))
        self.both(6, f"{self.folder}/libnvrtc.so.13 has no nvrtcVersion. hint: pip install "
                     "nvidia-cuda-nvrtc", RIDGE_CUDA_PATH=self.folder)

    def test_an_nvrtc_that_does_not_know_the_gpu(self):
        self.both(6, f"NVRTC 13.0 ({FAKE_CUDA}/libnvrtc.so.13) does not know the architecture sm_90. "
                     "hint: pip install --upgrade nvidia-cuda-nvrtc",
                  RIDGE_FAKE_NVRTC_ARCHITECTURES="sm_80", XDG_CACHE_HOME=self.path("cache"))

    def test_two_cudnns_that_are_mixed(self):
        part = self.path("libcudnn_ops.so.9")
        shutil.copy(f"{FAKE_CUDA}/libcudart.so.13", part)
        self.both(6, f"two cuDNNs are mixed: {FAKE_CUDA}/libcudnn.so.9 has opened {part}. hint: take "
                     f"{self.folder} out of LD_LIBRARY_PATH, or uninstall one of them",
                  RIDGE_FAKE_CUDNN_PART=part)


class Memory(Machine):
    """A plan that does not fit is exit 3, and a smaller batch is what a script tries next.  A GPU
    that has no memory for a plan that fits is exit 6: something else takes it."""

    def test_a_plan_that_does_not_fit_is_refused_before_the_first_step(self):
        for words, variables, has in (
                (["--device-memory", "1MiB"], {}, "--device-memory allows 1.00 MiB"),
                (["--device-memory", "1MiB"], {"RIDGE_FAKE_CUDA_OTHERS_BYTES": str(64 << 20)},
                 "--device-memory allows 65.0 MiB, both with 64.0 MiB in use before it"),
                ([], {"RIDGE_FAKE_CUDA_BYTES": str(1 << 20)}, "Test GPU 0 has 922 KiB")):
            done = self.ridge("train", *MODEL, *words, "--out", "run", env={**FAKE_GPU, **variables})
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertRegex(done.stderr, r"\nridge: plan: the run needs [0-9.]+ MiB on Test GPU 0, "
                                          rf"{has}\. \[R0101\]\n")
            self.assertFalse(os.path.exists(self.path("run")))

    def test_a_plan_that_does_not_fit_is_shown_and_exits_alike(self):
        done = self.ridge("plan", *MODEL, "--device-memory", "1MiB", env=FAKE_GPU)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stdout, "\n  does not fit: ")

    def test_a_context_that_finds_no_memory(self):
        self.both(6, "cuda:0: cuDevicePrimaryCtxRetain failed: CUDA_ERROR_OUT_OF_MEMORY (2). hint: end "
                     "what else uses it, which nvidia-smi lists",
                  RIDGE_FAKE_CUDA_FAIL="cuDevicePrimaryCtxRetain:1:2")

    def test_an_arena_that_finds_no_memory(self):
        """Another process was faster."""
        for verb, words in (("train", ["--steps", "4", "--out", "run"]), ("plan", [])):
            code, sentence = self.told(verb, *words, RIDGE_FAKE_CUDA_FAIL="cuMemCreate:1:2")
            self.assertEqual(code, 6)
            self.assertRegex(sentence, r"^ridge: an arena of [0-9.]+ MiB is needed, [0-9.]+ MiB of 256 "
                                       r"MiB are free: cuda:0: cuMemCreate failed: "
                                       r"CUDA_ERROR_OUT_OF_MEMORY \(2\)\. hint: --fit SIZE, or end "
                                       r"what else uses it, which nvidia-smi lists$")
        self.assertFalse(os.path.exists(self.path("run")))

    def test_memory_of_the_host_that_cannot_be_locked(self):
        for verb, words in (("train", ["--steps", "4", "--out", "run"]), ("plan", [])):
            code, sentence = self.told(verb, *words, RIDGE_FAKE_CUDA_FAIL="cuMemHostAlloc:1:2")
            self.assertEqual(code, 6)
            self.assertRegex(sentence, r"^ridge: [0-9.]+ [KM]iB of the host's memory cannot be locked: "
                                       r"cuda:0: cuMemHostAlloc failed: CUDA_ERROR_OUT_OF_MEMORY "
                                       r"\(2\)\. hint: end what else uses it, which top lists, or "
                                       r"raise the container's limit$")
        self.assertFalse(os.path.exists(self.path("run")))


class Lost(Machine):
    STEPS = ["--steps", "50", "--checkpoint-every", "2"]

    def lose(self, function):
        """A run whose GPU is lost in one of the calls of `function` between its checkpoints.  How many
        come before the first step depends on the rehearsal: the call is looked for."""
        least, most = 1, 1 << 13
        while least < most:
            call = (least + most) // 2
            done = self.ridge("train", *MODEL, *self.STEPS, "--out", "run",
                              env={**FAKE_GPU, "RIDGE_FAKE_CUDA_FAIL": f"{function}:{call}:719"})
            if done.returncode == 6 and self.checkpoints():
                return done
            least, most = (least, call) if done.returncode == 0 else (call + 1, most)
            shutil.rmtree(self.path("run"), ignore_errors=True)
        return self.fail("no call of the steps")

    def checkpoints(self):
        folder = self.path("run/checkpoints")
        return [name for name in os.listdir(folder) if name.startswith("step-")] \
            if os.path.isdir(folder) else []

    def test_a_gpu_that_is_lost_ends_the_run_and_its_checkpoints_are_whole(self):
        self.ok("train", *MODEL, *self.STEPS, "--out", "whole", env=FAKE_GPU)
        lost = self.lose("cuMemcpyDtoHAsync")
        self.assertIn(f"cuda:0: cuMemcpyDtoHAsync failed: {LOST}", lost.stderr.splitlines()[-1])
        self.assertFalse(os.path.exists(self.path("run/summary.json")))
        for name in self.checkpoints():
            self.ok("eval", "run", "--checkpoint", name[5:], "--data", "synthetic",
                    "--device", "cpu")
        resumed = self.ridge("train", "--resume", "run", "--progress", "plain", env=FAKE_GPU)
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        last = max(int(name[5:]) for name in self.checkpoints())
        self.assertEqual(last, 50)
        self.assertRegex(resumed.stderr, r"run: resuming at step \d+ of 50")
        self.assertEqual(self.read_json("run/summary.json")["parameters_sha256"],
                         self.read_json("whole/summary.json")["parameters_sha256"])

    def contents(self, run):
        """The files of tensors of each checkpoint, by step."""
        found = {}
        for path in sorted(glob.glob(self.path(f"{run}/checkpoints/step-*/*.safetensors"))):
            with open(path, "rb") as file:
                step, name = path.split("/")[-2:]
                found.setdefault(int(step[5:]), {})[name] = file.read()
        return found

    def lose_in_a_step(self, kind, call, launch, whole):
        """Loses the GPU in that call behind the first checkpoint, and resumes."""
        shutil.rmtree(self.path("run"), ignore_errors=True)
        lost = self.ridge("train", *MODEL, *SWEPT, "--kernel-launch", launch, "--out", "run",
                          env={**FAKE_GPU, f"RIDGE_FAKE_CUDA_{kind}": f"{call}:719",
                               "RIDGE_FAKE_CUDA_FAIL_SINCE": self.path("run/checkpoints/step-5")})
        self.assertEqual(lost.returncode, 6, lost.stderr)
        self.assertRegex(lost.stderr.splitlines()[-1], LOST_IN_A_STEP)
        kept = self.contents("run")
        self.assertEqual(sorted(kept), list(range(5, max(kept) + 1, 5)))
        for step, files in kept.items():
            self.assertEqual(files, whole[step], f"step {step}")
        self.ok("train", "--resume", "run", "-q", env=FAKE_GPU)
        self.assertEqual(self.contents("run"), whole)
        return max(kept)

    def test_a_gpu_that_is_lost_in_any_call_of_the_steps_loses_no_checkpoint(self):
        """At the call itself, or when its stream comes to it."""
        self.ok("train", *MODEL, *SWEPT, "--out", "whole", "-q", env=FAKE_GPU)
        whole = self.contents("whole")
        self.assertEqual(sorted(whole), list(range(5, 51, 5)))
        seed = random.randrange(1 << 30)
        chance = random.Random(seed)
        ends = set()
        for function, calls, launch, draws in (
                ("cuGraphLaunch", 80, "graph", 5), ("cuLaunchKernel", 400, "single", 5),
                ("cuMemcpyHtoDAsync", 150, "graph", 10), ("cuMemcpyDtoHAsync", 150, "graph", 10)):
            for i in range(draws):
                kind, call = ("FAIL", "FAIL_LATE")[i % 2], f"{function}:{chance.randint(1, calls)}"
                with self.subTest(kind=kind, call=call, seed=seed):
                    ends.add(self.lose_in_a_step(kind, call, launch, whole))
        self.assertGreater(len(ends), 3)

    def validations(self, text):
        return re.findall(r"step \d+: validation accuracy [0-9.]+ %, loss [0-9.]+", text)

    def test_a_gpu_that_is_lost_in_a_validation_loses_no_checkpoint_and_no_validation(self):
        words = [*MODEL, "--steps", "10", "--checkpoint-every", "5", "--validation", "0.25", "--eval-every", "5",
                 "--progress", "plain"]
        done = self.ridge("train", *words, "--out", "whole", env=FAKE_GPU)
        whole, told = self.contents("whole"), self.validations(done.stderr)
        self.assertEqual((sorted(whole), len(told)), ([5, 10], 2), done.stderr)
        chance = random.Random(seed := random.randrange(1 << 30))
        for step, kind, function in ((5, "FAIL", "cuGraphLaunch"), (5, "FAIL_LATE", "cuMemcpyHtoDAsync"),
                                     (10, "FAIL", "cuMemcpyDtoHAsync"), (10, "FAIL_LATE", "cuGraphLaunch")):
            call = f"{function}:{chance.randint(1, 200)}"  # it has 256 batches
            with self.subTest(step=step, kind=kind, call=call, seed=seed):
                shutil.rmtree(self.path("run"), ignore_errors=True)
                lost = self.ridge("train", *words, "--out", "run", env={
                    **FAKE_GPU, f"RIDGE_FAKE_CUDA_{kind}": f"{call}:719",
                    "RIDGE_FAKE_CUDA_FAIL_SINCE": self.path(f"run/checkpoints/step-{step}")})
                self.assertEqual(lost.returncode, 6, lost.stderr)
                self.assertRegex(lost.stderr.splitlines()[-1], LOST_IN_A_STEP)
                kept = {5: whole[5]} if step == 5 else whole
                self.assertEqual((self.contents("run"), self.validations(lost.stderr)),
                                 (kept, told[:len(kept) - 1]))
                self.assertFalse(os.path.exists(self.path("run/summary.json")))
                resumed = self.ridge("train", "--resume", "run", "--progress", "plain", env=FAKE_GPU)
                self.assertEqual((resumed.returncode, self.validations(resumed.stderr)),
                                 (0, told[len(kept) - 1:]), resumed.stderr)
                self.assertEqual(self.contents("run"), whole)

    def answer(self, *words):
        """Of a GPU that works, without its time."""
        return re.sub(r" in [0-9.]+ m?s\b", "", self.ok(*words, env=FAKE_GPU))

    def files(self, folder):
        """All that is in a folder, by its path."""
        found = {}
        for at, _, names in os.walk(self.path(folder)):
            for name in names:
                with open(os.path.join(at, name), "rb") as file:
                    found[os.path.join(at, name)] = file.read()
        return found

    def test_a_gpu_that_is_lost_in_eval_or_predict_changes_nothing(self):
        """Also while the checkpoint is loaded, which is not to blame."""
        self.ok("train", *MODEL, "--steps", "4", "--out", "run", "-q", env=FAKE_GPU)
        write_npz(self.path("in.npz"), {"x": ((6, 12), [0.1 * i for i in range(72)])})
        before = self.files("run")
        for words, calls in ((["eval", "run", "--data", "synthetic"], 200), (["predict", "run", "in.npz"], 1)):
            words += ["--device", "cuda", "-q"]
            answer = self.answer(*words)
            before = before if words[0] == "predict" else self.files("run")
            # The fifth upload is of a checkpoint.
            for function, call in (("cuGraphLaunch", calls), ("cuMemcpyHtoDAsync", 5),
                                   ("cuMemcpyDtoHAsync", calls), ("cuStreamSynchronize", 10)):
                for kind in ("FAIL", "FAIL_LATE"):
                    lost = self.ridge(*words, env={**FAKE_GPU,
                                                   f"RIDGE_FAKE_CUDA_{kind}": f"{function}:{call}:719"})
                    with self.subTest(verb=words[0], kind=kind, function=function):
                        self.assertEqual((lost.returncode, lost.stdout), (6, ""), lost.stderr)
                        self.assertRegex(lost.stderr.splitlines()[-1], LOST_IN_A_STEP)
                        self.assertEqual(self.files("run"), before)
            self.assertEqual(self.answer(*words), answer)

    def test_a_gpu_that_is_lost_before_the_first_step_leaves_no_run(self):
        for call in ("cuMemcpyHtoDAsync:1:719", "cuGraphLaunch:1:719", "cuModuleLoadData:2:719"):
            code, sentence = self.told("train", "--out", "run", RIDGE_FAKE_CUDA_FAIL=call)
            self.assertEqual(code, 6, sentence)
            self.assertIn(f"cuda:0: {call.split(':')[0]} failed: {LOST}", sentence)
            self.assertFalse(os.path.exists(self.path("run")), call)


if __name__ == "__main__":
    unittest.main()
