"""Network namespaces of this machine as machines of a cluster, with links of a given rate.

Each namespace has a link to a bridge; `tc tbf` limits what it sends and what it receives.  Open MPI
starts one rank in each, over TCP.  Needs root, iproute2 and Open MPI.
"""
import pathlib
import subprocess

BURST_S = 0.002  # that a link may be idle and make up for: less is no rate where timers are late
LEAST_BURST = 16384
MOST_QUEUED = "16mb"  # nothing is dropped


def run(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True)


class Network:
    """So many namespaces, each of which is a machine to MPI."""

    def __init__(self, ranks, mbit, folder):
        self.ranks, self.mbit = ranks, mbit
        self.agent = pathlib.Path(folder, "agent.sh")
        self.names = [f"ridge-{i}" for i in range(ranks)]
        self.addresses = [f"10.77.0.{i + 1}" for i in range(ranks)]

    def __enter__(self):
        self.remove()
        run("ip", "netns", "add", "ridge-hub")
        run("ip", "-n", "ridge-hub", "link", "add", "hub", "type", "bridge")
        run("ip", "-n", "ridge-hub", "link", "set", "hub", "up")
        for i, (name, address) in enumerate(zip(self.names, self.addresses)):
            port = f"port{i}"
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", port, "netns", "ridge-hub")
            run("ip", "-n", "ridge-hub", "link", "set", port, "master", "hub", "up")
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            self.limit(name, "eth0")
            self.limit("ridge-hub", port)
        # What mpirun takes for ssh: HOST COMMAND...
        self.agent.write_text("#!/bin/sh\nhost=$1; shift\nns=ridge-$((${host##*.} - 1))\n"
                              "exec ip netns exec $ns unshare -u sh -c 'hostname \"$0\"; eval \"$@\"' $ns \"$*\"\n", encoding="utf-8")
        self.agent.chmod(0o755)
        return self

    def limit(self, name, link):
        burst = max(LEAST_BURST, int(self.mbit * 1e6 / 8 * BURST_S))
        run("ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", link, "root", "tbf", "rate", f"{self.mbit}mbit", "burst", str(burst),
            "limit", MOST_QUEUED)

    def remove(self):
        for name in (*self.names, "ridge-hub"):
            run("ip", "netns", "del", name, check=False)

    def __exit__(self, *_):
        self.remove()

    def mpirun(self, command, environment=()):
        """One rank in each namespace; the launcher is in the first.  `environment`: names of variables that ranks take over."""
        # Two machines to MPI need two session folders.
        exported = [word for name in environment for word in ("-x", name)]
        return ["ip", "netns", "exec", self.names[0], "unshare", "-u", "sh", "-c", f'hostname {self.names[0]}; exec "$@"', "sh", "mpirun.openmpi",
                "--allow-run-as-root", "--host", ",".join(self.addresses), "-n", str(self.ranks), "--bind-to", "none", "--mca", "plm_rsh_agent",
                str(self.agent), "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "10.77.0.0/24", "--mca", "oob_tcp_if_include",
                "10.77.0.0/24", *exported, *command]
