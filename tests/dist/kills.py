#!/usr/bin/env python3
"""Ranks are killed at random moments while they train and write checkpoints; every checkpoint that is there loads.

usage: kills.py --ridge build/release/bin/ridge [--kills 200] [--seed 0]

Each start is `train --resume` on another number of ranks (1 to 3, both MPIs) than the one before; one of its ranks, or its
launcher, is killed with SIGKILL. After each kill all complete checkpoints are read and verified by `ridge eval`, the newest
by the next start too. At the end the run goes on undisturbed, and its parameters are those of a run that nobody killed.
"""
import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e"))

TRAIN = ["mlp:hidden=32", "--data", "synthetic", "--threads", "1", "--slices", "4", "--sums", "tree", "-q"]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ridge", required=True)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def steps(folder):
    names = os.listdir(f"{folder}/checkpoints") if os.path.isdir(f"{folder}/checkpoints") else []
    return sorted(int(name[5:]) for name in names if re.fullmatch(r"step-\d+", name))


class Kills:
    def __init__(self, given, folder):
        # The helpers of the tests read the program's path when they are loaded.
        os.environ["RIDGE"] = self.ridge = os.path.realpath(given.ridge)
        import _ranks  # pylint: disable=import-outside-toplevel
        import _ridge  # pylint: disable=import-outside-toplevel
        self.ranks, self.environment = _ranks, _ridge.environment()
        self.random = random.Random(given.seed)
        self.folder = folder
        self.before = 0  # ranks of the last start
        self.partial = self.ended_by_launcher = 0

    def run(self, *words):
        return subprocess.run([self.ridge, *words], cwd=self.folder, env=self.environment, text=True, capture_output=True,
                              check=False, timeout=600)

    def start(self):
        count = self.random.choice([n for n in (1, 2, 3) if n != self.before])
        self.before = count
        mpi = self.random.choice(list(self.ranks.MPIRUN)) if count < 3 else "openmpi"  # MPICH spins: not on fewer cores
        words = [self.ridge, "train", *TRAIN, "--out", "run", "--resume", "--steps", "100000000",
                 "--checkpoint-every", "10", "--keep", "5", "--checkpoint-writers", str(self.random.randint(1, count))]
        launcher = [*self.ranks.MPIRUN[mpi], "-n", str(count)] if count > 1 else []
        job = subprocess.Popen([*launcher, *words], cwd=self.folder, env=self.environment, text=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        return job, count

    def victims(self, job, count):
        """The job's ranks, once it has written a checkpoint or is about to."""
        newest = max(steps(f"{self.folder}/run"), default=0)
        for _ in range(600):
            found = self.ranks.children(job.pid) if count > 1 else [job.pid]
            if len(found) == count and max(steps(f"{self.folder}/run"), default=0) > newest:
                return found
            if job.poll() is not None:
                sys.exit(f"a start on {count} ranks ended with {job.returncode}: {job.stderr.read()}")
            time.sleep(0.01)
        sys.exit(f"a start on {count} ranks writes no checkpoint")

    def kill(self, number):
        job, count = self.start()
        victims = self.victims(job, count)
        time.sleep(self.random.uniform(0, 0.3))
        os.kill(self.random.choice(victims), signal.SIGKILL)
        try:
            job.communicate(timeout=20)
        except subprocess.TimeoutExpired:  # seen with mpirun of Open MPI
            self.ended_by_launcher += 1
            job.kill()
            job.communicate()
        there = os.listdir(f"{self.folder}/run/checkpoints")
        self.partial += any(".tmp-" in name for name in there)
        for step in steps(f"{self.folder}/run"):
            done = self.run("eval", "run", "--data", "synthetic", "--checkpoint", str(step), "--json")
            if done.returncode != 0:
                sys.exit(f"kill {number}: the checkpoint of step {step} does not load: {done.stderr}")

    def hash_of(self, out):
        with open(f"{self.folder}/{out}/summary.json", encoding="utf-8") as file:
            return json.load(file)["parameters_sha256"]

    def equals_undisturbed(self):
        total = str(max(steps(f"{self.folder}/run")) + 100)
        for words in (["--resume", "run", "--steps", total, "-q"],
                      [*TRAIN, "--out", "alone", "--steps", total, "--checkpoint-every", "10000000"]):
            done = self.run("train", *words)
            if done.returncode != 0:
                sys.exit(done.stderr)
        if self.hash_of("run") != self.hash_of("alone"):
            sys.exit(f"after {total} steps the parameters differ from those of an undisturbed run")
        return total


def main():
    given = options()
    folder = tempfile.mkdtemp(prefix="ridge-kills-")
    try:
        kills = Kills(given, folder)
        begin = time.monotonic()
        for number in range(1, given.kills + 1):
            kills.kill(number)
        total = kills.equals_undisturbed()
        print(f"{given.kills} kills, {kills.partial} left a partial checkpoint; all complete ones load; {total} steps have the "
              f"bits of an undisturbed run ({time.monotonic() - begin:.0f} s; {kills.ended_by_launcher} launchers had to be ended)")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
