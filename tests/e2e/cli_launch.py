"""`ridge launch`: ranks under supervision, and the files for Slurm and Kubernetes."""
import json
import os
import re
import signal
import stat
import subprocess
import time
import unittest

from _ranks import MPIRUN, attempts, children
from _ridge import RIDGE, SMALL, RidgeTest, environment

LONG = ["train", *SMALL, "--slices", "4", "--steps", "4000", "--checkpoint-every", "100", "--keep", "100", "-q"]
ENDLESS = [word.replace("4000", "400000") for word in LONG]  # a launcher may pass a signal on late


class Supervised(RidgeTest):
    def launch(self, *words, env=None, train=()):
        """A launch under way, with the training of LONG in `run`."""
        job = subprocess.Popen([RIDGE, "launch", "--submit", *words, "--", *LONG, *train, "--out", "run"], cwd=self.folder,
                               env=environment(env), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: job.poll() is None and job.send_signal(signal.SIGTERM))
        return job

    def newest(self):
        folder = self.path("run/checkpoints")
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return max([int(name[5:]) for name in names if re.fullmatch(r"step-\d+", name)], default=0)

    def ranks_at(self, job, ranks, step=1):
        """The ranks' processes, once there is a checkpoint of that step."""
        for _ in range(1200):
            found = children(job.pid)
            if self.newest() >= step and len(found) == ranks:
                return found
            if job.poll() is not None:
                self.fail(job.communicate()[1])
            time.sleep(0.02)
        self.fail("no checkpoint")

    def status(self):
        return self.read_json("run/status.json")

    def ends(self, job, code):
        _, said = job.communicate(timeout=180)
        self.assertEqual(job.returncode, code, said)
        return [line for line in said.splitlines() if line.startswith("ridge: ")]

    def undisturbed(self):
        self.ok(*LONG, "--sums", "tree", "--out", "alone")
        return self.read_json("alone/summary.json")["parameters_sha256"]

    def test_a_killed_rank_is_started_again_to_the_same_bits(self):
        whole = self.undisturbed()
        for mpi in MPIRUN:
            with self.subTest(mpi=mpi):
                job = self.launch("--devices", "2", "--mpi", mpi)
                for rank, step in ((1, 100), (0, 1000)):
                    os.kill(self.ranks_at(job, 2, step)[rank], signal.SIGKILL)
                    time.sleep(1)
                said = self.ends(job, 0)
                attempts = [line for line in said if line.startswith("ridge: attempt ")]
                self.assertEqual(len(attempts), 2, said)
                for number, line in enumerate(attempts):
                    self.assertRegex(line, rf"^ridge: attempt {number + 1}: ended without a word \(mpirun's exit code is "
                                     r"\d+\), newest checkpoint: step \d+; starting again on 2 devices$")
                self.assertEqual(self.read_json("run/summary.json")["parameters_sha256"], whole)
                self.assertEqual((self.status()["state"], self.status()["ranks"]), ("done", 2))
                subprocess.run(["rm", "-r", self.path("run")], check=True)

    def test_without_progress_it_goes_on_with_a_rank_fewer(self):
        whole = self.undisturbed()
        job = self.launch("--devices", "3", "--min-devices", "2", train=("--shares", "2,1,1"))
        first = self.ranks_at(job, 3, 300)
        seen = set(attempts(job.pid))
        os.kill(first[1], signal.SIGKILL)
        for _ in range(2):  # before they have trained
            seen = self.kill_a_rank_of_the_next_attempt(job, seen)
        said = self.ends(job, 0)
        self.assertRegex(said[-1], r"; starting again on 2 devices \(restart 2 of 3 without a newer checkpoint\)$")
        self.assertEqual((self.status()["ranks"], self.status()["slices"]), (2, [2, 2]))  # the shares were for three
        self.assertEqual(self.read_json("run/summary.json")["parameters_sha256"], whole)

    def kill_a_rank_of_the_next_attempt(self, job, seen):
        """`seen`: the attempts before."""
        for _ in range(3000):
            for attempt, ranks in attempts(job.pid).items():
                if attempt not in seen:
                    os.kill(ranks[max(ranks)], signal.SIGKILL)
                    return seen | {attempt}
            time.sleep(0.005)
        self.fail("the ranks did not start again")

    def test_a_late_rank_is_ended_and_started_again(self):
        job = self.launch("--devices", "2")
        os.kill(self.ranks_at(job, 2, 100)[1], signal.SIGSTOP)
        said = self.ends(job, 0)
        self.assertRegex(said[1], r"^ridge: rank 0: waited .*rank 1 is late: .*does not run \(no heartbeat")
        self.assertRegex(said[2], r"^ridge: attempt 1: failed: rank 0: waited .*; starting again on 2 devices$")
        self.assertEqual(self.status()["state"], "done")

    def test_a_signal_stops_all_at_one_step_and_75_says_so(self):
        for mpi in MPIRUN:
            for name in ("SIGTERM", "SIGINT", "SIGUSR1"):
                with self.subTest(mpi=mpi, signal=name):
                    job = self.launch("--devices", "2", "--mpi", mpi)
                    self.ranks_at(job, 2, 100)
                    job.send_signal(getattr(signal, name))
                    said = self.ends(job, 75)
                    status = self.status()
                    self.assertEqual((status["state"], status["step"]), ("stopped", status["checkpoint"]))
                    self.assertEqual(status["checkpoint"], self.newest())
                    self.assertEqual(said[-1], f"ridge: attempt 1: stopped, checkpoint at step {self.newest()}")
                    subprocess.run(["rm", "-r", self.path("run")], check=True)

    def test_the_launchers_own_codes_do_not_say_what_became_of_a_run(self):
        expected = {("openmpi", "TERM"): {1, 143}, ("openmpi", "INT"): {1}, ("openmpi", "USR1"): {75}, ("openmpi", "KILL"): {137},
                    ("mpich", "TERM"): {0, 75}, ("mpich", "INT"): {0, 75}, ("mpich", "USR1"): {0, 75},
                    ("mpich", "KILL"): {6, 9}}  # 6: the other rank read the dead one's memory, and UCX aborts
        for (mpi, name), codes in expected.items():
            with self.subTest(mpi=mpi, signal=name):
                subprocess.run(["rm", "-rf", self.path("run")], check=True)
                job = subprocess.Popen([*MPIRUN[mpi], "-n", "2", RIDGE, *ENDLESS, "--out", "run"], cwd=self.folder, env=environment(),
                                       text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                ranks = self.ranks_at(job, 2, 100)
                os.kill(ranks[1] if name == "KILL" else job.pid, getattr(signal, "SIG" + name))
                said = job.communicate(timeout=60)[1]
                self.assertIn(job.returncode, codes, said)
                self.assertEqual(self.status()["state"], "running" if name == "KILL" else "stopped")

    def test_what_would_fail_again_is_not_started_again(self):
        train = ["train", *SMALL, "--slices", "4", "--steps", "50", "--out", "run", "-q"]
        done = self.ridge("launch", "--submit", "--devices", "2", "--", *train, "--optimizer", "sgd", "--lr", "1e38")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ridge: attempt 1: failed: step ", done.stderr)
        status = self.status()
        self.assertEqual((status["state"], status["may_retry"]), ("failed", False))
        done = self.ridge("launch", "--submit", "--devices", "2", "--", *train)
        self.assertEqual(done.returncode, 2, done.stderr)  # it holds a run already
        self.assertNotIn("attempt", done.stderr)

    def test_restarts_without_progress_come_to_an_end(self):
        job = self.launch("--devices", "2", "--max-restarts", "1")
        seen = set()
        for _ in range(2):
            seen = self.kill_a_rank_of_the_next_attempt(job, seen)
        said = self.ends(job, 1)
        self.assertRegex(said[-1], r"1 restart without a newer checkpoint are enough\. hint: --max-restarts$")

    def test_a_finished_run_is_done(self):
        words = ["launch", "--submit", "--devices", "2", "--", "train", *SMALL, "--slices", "4", "--steps", "5", "-q"]
        self.ok(*words, "--out", "run")
        self.ok("launch", "--submit", "--devices", "2", "--", "train", "--resume", "run")
        self.assertEqual(self.status()["state"], "done")


class Files(RidgeTest):
    TRAIN = ["--", "train", "mlp:hidden=32", "--data", "csv:it's here.csv", "--batch", "48"]
    CLUSTER = ["--image", "registry/me:1", "--claim", "data"]

    def file(self, *words):
        return self.ok("launch", "--file", "-", *words, *self.TRAIN)

    def test_mpirun_is_shown_and_nothing_starts(self):
        done = self.ridge("launch", "--devices", "3", *self.TRAIN)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"^\S+mpirun\S* -n 3 .*ridge train mlp:hidden=32 --data 'csv:it'\\''s here\.csv' "
                         r"--batch 48 --out runs/mlp-1 --threads \d+ --sums tree\n$")
        self.assertEqual(done.stderr, "ridge: runs/mlp-1: rank 0 of 3 computes 1 of 4 slices, 12 of 48 samples a step; "
                         "others up to 2\n")
        self.assertEqual(os.listdir(self.folder), [])
        found = json.loads(self.ok("launch", "--devices", "3", "--json", *self.TRAIN))
        self.assertEqual({key: found[key] for key in ("on", "folder", "devices", "batch", "slices", "file")},
                         {"on": "mpirun", "folder": "runs/mlp-1", "devices": 3, "batch": 48, "slices": 4, "file": None})

    def test_slurm_gets_a_script_that_bash_takes(self):
        self.ok("launch", "--on", "slurm", "--devices", "8", "--devices-per-node", "4", "--cpus-per-device", "6",
                *self.TRAIN, "--slices", "8")
        with open(self.path("mlp-1.sbatch")) as file:
            script = file.read()
        for line in ("--nodes=2", "--ntasks=8", "--ntasks-per-node=4", "--cpus-per-task=6", "--requeue",
                     "--open-mode=append", "--signal=TERM@120"):
            self.assertIn(f"#SBATCH {line}\n", script)
        self.assertRegex(script, r"\nsrun --mpi=pmix --kill-on-bad-exit=1 --cpus-per-task=6 \S+ train .* --threads 6 .*--resume\n")
        subprocess.run(["bash", "-n", self.path("mlp-1.sbatch")], check=True)
        self.assertIn("--mpi=pmi2", self.file("--on", "slurm", "--mpi", "mpich"))

    def requeues(self, status, code, restarts=0):
        """What the script does when srun ends with this code and the run says this."""
        self.write("run.sbatch", self.file_for_run())
        bin_folder = self.path("bin")
        os.makedirs(bin_folder, exist_ok=True)
        os.makedirs(self.path("run"), exist_ok=True)
        for name, body in (("srun", f"test -f new.json && cp new.json run/status.json; exit {code}"),
                           ("scontrol", "echo requeued")):
            self.write(f"bin/{name}", f"#!/bin/bash\n{body}\n")
            os.chmod(self.path(f"bin/{name}"), stat.S_IRWXU)
        if os.path.exists(self.path("new.json")):
            os.remove(self.path("new.json"))
        if status:
            self.write("new.json", json.dumps(status, indent=2) + "\n")
        done = subprocess.run(["bash", "run.sbatch"], cwd=self.folder, text=True, capture_output=True, check=False,
                              env={"PATH": bin_folder + ":" + os.environ["PATH"], "SLURM_JOB_ID": "1",
                                   "SLURM_RESTART_COUNT": str(restarts)})
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout == "requeued\n"

    def file_for_run(self):
        return self.ok("launch", "--on", "slurm", "--file", "-", *self.TRAIN, "--out", "run")

    def test_the_script_believes_the_run_and_not_srun(self):
        def status(state, may_retry=False):
            return {"state": state, "step": 3, "checkpoint": None, "ranks": 2, "why": "a \"b\"", "may_retry": may_retry}
        self.assertEqual(self.requeues(status("done"), 137), (0, False))
        self.assertEqual(self.requeues(status("stopped"), 0), (75, True))
        self.assertEqual(self.requeues(status("running"), 137), (137, True))
        self.assertEqual(self.requeues(status("running"), 137, restarts=3), (137, False))
        self.assertEqual(self.requeues(status("failed"), 1), (1, False))
        self.assertEqual(self.requeues(status("failed", True), 74), (74, True))
        self.assertEqual(self.requeues(None, 2), (2, False))
        self.assertEqual(self.requeues(None, 137), (137, True))

    def test_an_mpijob_has_the_published_fields(self):
        job, = documents(self.file("--on", "mpijob", "--devices", "4", "--cpus-per-device", "2", "--max-restarts", "5",
                                   *self.CLUSTER))
        fields(self, job, MPIJOB)
        spec = job["spec"]
        self.assertEqual((job["apiVersion"], job["kind"]), ("kubeflow.org/v2beta1", "MPIJob"))
        self.assertEqual((spec["launcherCreationPolicy"], spec["runPolicy"]),
                         ("WaitForWorkersReady", {"backoffLimit": 5, "cleanPodPolicy": "Running"}))
        launcher, worker = spec["mpiReplicaSpecs"]["Launcher"], spec["mpiReplicaSpecs"]["Worker"]
        self.assertEqual((launcher["restartPolicy"], worker["restartPolicy"], worker["replicas"]), ("OnFailure", "Never", 4))
        command = launcher["template"]["spec"]["containers"][0]["command"]
        self.assertEqual(command[:3], ["mpirun", "-n", "4"])
        self.assertEqual(command[command.index("--data") + 1], "csv:it's here.csv")
        self.assertEqual(command[-1], "--resume")

    def test_a_trainjob_has_the_published_fields(self):
        runtime, job = documents(self.file("--on", "trainjob", "--devices", "4", "--devices-per-node", "2", *self.CLUSTER))
        fields(self, runtime, RUNTIME)
        fields(self, job, TRAINJOB)
        self.assertEqual(job["spec"]["runtimeRef"]["name"], runtime["metadata"]["name"])
        self.assertEqual((job["spec"]["trainer"]["numNodes"], job["spec"]["trainer"]["numProcPerNode"]), (2, 2))
        self.assertEqual(job["spec"]["trainer"]["command"][:3], ["mpirun", "-n", "4"])
        names = [one["name"] for one in runtime["spec"]["template"]["spec"]["replicatedJobs"]]
        self.assertEqual(names, ["node", "launcher"])

    def test_what_is_missing_is_said(self):
        self.refused(2, "launch: the training is missing. hint: ridge launch --devices 2 -- train MODEL --data SPEC", "launch")
        self.refused(2, "launch: --devices stands behind `train`. hint: ridge launch --devices N -- train ...",
                     "launch", "--", "train", *SMALL, "--devices", "2")
        self.refused(2, "launch: batch 2 in 2 slices is too little for 3 devices. hint: --slices 3 behind `train`",
                     "launch", "--devices", "3", "--", "train", *SMALL, "--batch", "2", "--slices", "2")
        self.refused(2, "launch --on mpijob: --image and --claim are missing. hint: --image NAME, the container with ridge, "
                     "sshd and an MPI; --claim NAME, the volume claim that holds data and runs",
                     "launch", "--on", "mpijob", *self.TRAIN)
        self.refused(2, "launch --on trainjob: its schema has host files of Open MPI alone. hint: --on mpijob, or --mpi openmpi",
                     "launch", "--on", "trainjob", "--mpi", "mpich", *self.CLUSTER, *self.TRAIN)
        self.fails(1, "sbatch cannot be started here. hint: `sbatch mlp-1.sbatch` on a machine of the cluster", "launch",
                   "--on", "slurm", "--submit", "-q", *self.TRAIN, env={"PATH": "/nowhere"})
        self.fails(2, "train: ", "launch", "--", "train", *SMALL, "--no-such")


# Field names and types of the custom resource definitions: mpi-operator 0.8.0 (kubeflow.org_mpijobs.yaml, v2beta1),
# Kubeflow Trainer 2.0.0 to 2.3.0 (trainer.kubeflow.org_trainingruntimes.yaml and _trainjobs.yaml, v1alpha1), with the
# JobSet and the pod of core/v1 that they contain.  A list stands for its items, ... for any value, a type for itself, a
# set for its members.
WORDS = [str]
POD = {"spec": {"containers": [{"name": str, "image": str, "workingDir": str, "command": WORDS, "resources": {"limits": {"cpu": int}},
                                "readinessProbe": {"tcpSocket": {"port": int}, "periodSeconds": int},
                                "volumeMounts": [{"name": str, "mountPath": str}]}],
                "volumes": [{"name": str, "emptyDir": {"medium": str}, "persistentVolumeClaim": {"claimName": str}}]}}
REPLICA = {"replicas": int, "restartPolicy": {"Never", "OnFailure"}, "template": POD}
MPIJOB = {"apiVersion": str, "kind": str, "metadata": {"name": str}, "spec": {
    "slotsPerWorker": int, "mpiImplementation": {"OpenMPI", "Intel", "MPICH"},
    "launcherCreationPolicy": {"AtStartup", "WaitForWorkersReady"},
    "runPolicy": {"backoffLimit": int, "cleanPodPolicy": {"None", "Running", "All"}}, "mpiReplicaSpecs": {"Launcher": REPLICA, "Worker": REPLICA}}}
RUNTIME = {"apiVersion": str, "kind": str, "metadata": {"name": str, "labels": ...}, "spec": {
    "mlPolicy": {"numNodes": int, "mpi": {"numProcPerNode": int, "mpiImplementation": {"OpenMPI"}, "sshAuthMountPath": str,
                                          "runLauncherAsNode": bool}},
    "template": {"spec": {"network": {"publishNotReadyAddresses": bool}, "failurePolicy": {"maxRestarts": int},
                          "successPolicy": {"operator": {"All", "Any"}, "targetReplicatedJobs": WORDS},
                          "replicatedJobs": [{"name": str, "dependsOn": [{"name": str, "status": {"Ready", "Complete"}}],
                                              "template": {"metadata": {"labels": ...}, "spec": {"backoffLimit": int, "template": {
                                                  "spec": {**POD["spec"], "restartPolicy": {"Never", "OnFailure"}}}}}}]}}}}
TRAINJOB = {"apiVersion": str, "kind": str, "metadata": {"name": str}, "spec": {
    "runtimeRef": {"apiGroup": str, "kind": str, "name": str},
    "trainer": {"image": str, "numNodes": int, "numProcPerNode": int, "command": WORDS}}}


def fields(test, value, schema, where=""):
    if schema is ...:
        return
    if isinstance(schema, set):
        test.assertIn(value, schema, where)
    elif isinstance(schema, type):
        test.assertIs(type(value), schema, where)
    elif isinstance(schema, list):
        test.assertIs(type(value), list, where)
        for item in value:
            fields(test, item, schema[0], where + "[]")
    else:
        test.assertIs(type(value), dict, where)
        for key, item in value.items():
            test.assertIn(key, schema, where)
            fields(test, item, schema[key], f"{where}.{key}")


def documents(text):
    """The values of block YAML whose scalars are plain or JSON."""
    return [block([line for line in part.splitlines() if line.strip()], 0)[0] for part in text.split("---\n")]


def scalar(text):
    try:
        return json.loads(text)
    except ValueError:
        return [word.strip() for word in text[1:-1].split(",")] if text.startswith("[") else text


def block(lines, indent):
    """The value that begins at this indentation, and the lines behind it."""
    value = [] if lines[0].strip().startswith("- ") else {}
    while lines:
        line = lines[0]
        here = len(line) - len(line.lstrip())
        if here < indent or (isinstance(value, list) and not line.lstrip().startswith("- ")) or (here == indent and isinstance(value, dict) and line.lstrip().startswith("- ")):
            break
        assert here == indent, line
        if isinstance(value, list):
            inner = " " * (indent + 2) + line.lstrip()[2:]
            item, lines = block([inner, *lines[1:]], indent + 2)
            value.append(item)
            continue
        key, _, rest = line.strip().partition(":")
        lines = lines[1:]
        if rest:
            value[key] = scalar(rest.strip())
            continue
        deeper = len(lines[0]) - len(lines[0].lstrip())
        value[key], lines = block(lines, deeper)
    return value, lines


if __name__ == "__main__":
    unittest.main()
