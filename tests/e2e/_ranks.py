"""The mpirun of each MPI, its plug-in, and the ranks that a launcher started."""
import os

from _ridge import RIDGE

PLUGINS = os.path.join(os.path.dirname(RIDGE), "..", "lib", "ridge")
AS_ROOT = ["--allow-run-as-root"] if os.geteuid() == 0 else []
MPIRUN = {
    "openmpi": ["mpirun.openmpi", "--quiet", "--oversubscribe", "--bind-to", "none", *AS_ROOT],
    "mpich": ["mpirun.mpich"],
}
NAME = {"openmpi": "Open MPI", "mpich": "MPICH"}


def attempts(launcher):
    """The ranks of each attempt of a launcher, by rank.  An attempt is the process, such as mpirun, that started them;
    MPICH has a proxy between."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                variables = dict(word.split(b"=", 1) for word in file.read().split(b"\0") if b"=" in word)
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            if os.path.realpath(f"/proc/{name}/exe") != os.path.realpath(RIDGE):
                continue
            starter = int(name)
            while parent not in (0, 1, launcher):
                starter = parent
                with open(f"/proc/{parent}/stat") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue
        rank = variables.get(b"OMPI_COMM_WORLD_RANK") or variables.get(b"PMI_RANK")
        if parent == launcher and rank is not None:
            found.setdefault(starter, {})[int(rank)] = int(name)
    return found


def children(launcher):
    """The ranks that a launcher started, by rank."""
    found = {}
    for ranks in attempts(launcher).values():
        found.update(ranks)
    return [found[rank] for rank in sorted(found)]


def plugin(mpi):
    return os.path.join(PLUGINS, f"libridge_mpi_{mpi}.so")
