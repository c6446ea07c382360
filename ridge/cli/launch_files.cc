// Kubernetes files are written in the part of YAML that is JSON where texts of the user stand, so
// nothing of theirs can end a field.  Field names: kubeflow.org/v2beta1 and
// trainer.kubeflow.org/v1alpha1 as the custom resource definitions have them that
// docs/many_devices.md names; tests/e2e/cli_launch.py checks them.
#include "ridge/cli/launch_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "ridge/core/shell.h"

namespace ridge::cli {
namespace {

constexpr char kWorkFolder[] = "/work";

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string QuotedList(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(Quoted(word));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

// `text` with so many spaces before each line.
std::string Indented(int spaces, const std::string& text) {
  std::string result;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin) + 1;
    result += std::string(static_cast<size_t>(spaces), ' ') + text.substr(begin, end - begin);
    begin = end;
  }
  return result;
}

std::vector<std::string> MpirunIn(const LaunchJob& job) {
  std::vector<std::string> words = {"mpirun", "-n", std::to_string(job.devices)};
  if (job.mpi == Mpi::kOpenMpi) {
    for (const char* word : {"--bind-to", "none", "--allow-run-as-root"}) words.emplace_back(word);
  } else {
    for (const char* word : {"-bind-to", "none"}) words.emplace_back(word);
  }
  words.push_back(job.program);
  words.insert(words.end(), job.words.begin(), job.words.end());
  return words;
}

// A pod's containers and volumes; `command` may be empty: the image's own.
std::string PodSpec(const LaunchJob& job, const std::string& container,
                    const std::vector<std::string>& command, bool computes) {
  std::string text = fmt::format(
      "containers:\n"
      "- name: {}\n"
      "  image: {}\n"
      "  workingDir: {}\n",
      container, Quoted(job.image), kWorkFolder);
  if (!command.empty()) text += fmt::format("  command: {}\n", QuotedList(command));
  if (computes && job.cpus > 0) {
    text +=
        fmt::format("  resources:\n    limits:\n      cpu: {}\n", job.cpus * job.devices_per_node);
  }
  // mpirun starts when the pods that compute are ready: when they take ssh.
  if (computes) text += "  readinessProbe:\n    tcpSocket:\n      port: 22\n    periodSeconds: 2\n";
  text += fmt::format(
      "  volumeMounts:\n"
      "  - name: shared-memory\n"
      "    mountPath: /dev/shm\n"
      "  - name: work\n"
      "    mountPath: {}\n"
      "volumes:\n"
      "- name: shared-memory\n"
      "  emptyDir:\n"
      "    medium: Memory\n"
      "- name: work\n"
      "  persistentVolumeClaim:\n"
      "    claimName: {}\n",
      kWorkFolder, Quoted(job.claim));
  return text;
}

// Of a TrainingRuntime, up to its replicated jobs.
std::string RuntimeHead(const LaunchJob& job) {
  return fmt::format(
      "apiVersion: trainer.kubeflow.org/v1alpha1\n"
      "kind: TrainingRuntime\n"
      "metadata:\n"
      "  name: {0}\n"
      "  labels:\n"
      "    trainer.kubeflow.org/framework: mpi\n"
      "spec:\n"
      "  mlPolicy:\n"
      "    numNodes: {1}\n"
      "    mpi:\n"
      "      numProcPerNode: {2}\n"
      "      mpiImplementation: OpenMPI\n"
      "      sshAuthMountPath: /root/.ssh\n"
      "      runLauncherAsNode: false\n"
      "  template:\n"
      "    spec:\n"
      "      network:\n"
      "        publishNotReadyAddresses: true\n"
      "      failurePolicy:\n"
      "        maxRestarts: {3}\n"
      "      successPolicy:\n"
      "        operator: All\n"
      "        targetReplicatedJobs: [launcher]\n"
      "      replicatedJobs:\n",
      job.name, job.nodes(), job.devices_per_node, job.max_restarts);
}

// A pod that fails is not started again by itself: all of them are, by the failure policy.
std::string ReplicatedJob(const char* name, const char* more, const std::string& pod) {
  return fmt::format(
             "      - name: {}\n"
             "{}"
             "          spec:\n"
             "            backoffLimit: 0\n"
             "            template:\n"
             "              spec:\n"
             "                restartPolicy: Never\n",
             name, more) +
         Indented(16, pod);
}

std::string TrainJobOf(const LaunchJob& job) {
  return fmt::format(
      "apiVersion: trainer.kubeflow.org/v1alpha1\n"
      "kind: TrainJob\n"
      "metadata:\n"
      "  name: {0}\n"
      "spec:\n"
      "  runtimeRef:\n"
      "    apiGroup: trainer.kubeflow.org\n"
      "    kind: TrainingRuntime\n"
      "    name: {0}\n"
      "  trainer:\n"
      "    image: {1}\n"
      "    numNodes: {2}\n"
      "    numProcPerNode: {3}\n"
      "    command: {4}\n",
      job.name, Quoted(job.image), job.nodes(), job.devices_per_node, QuotedList(MpirunIn(job)));
}

// {0}: the run folder, {1}: how many restarts.
constexpr char kSlurmEnd[] =
    "code=$?\n"
    "\n"
    "# The verdict is the run's own: exit codes of launchers differ.\n"
    "field() {{ sed -n \"s/^ *\\\"$1\\\": "
    "\\\"\\{{0,1\\}}\\([^\\\",]*\\)\\\"\\{{0,1\\}},\\{{0,1\\}}\\$/\\1/p\" {0}/status.json "
    "2>/dev/null; }}\n"
    "state=$(field state)\n"
    "again=no\n"
    "case \"$state\" in\n"
    "  done) exit 0 ;;\n"
    "  stopped) code=75 again=yes ;;                 # it has a checkpoint\n"
    "  failed) [ \"$(field may_retry)\" = true ] && again=yes ;;\n"
    "  *) case $code in [2-7]) ;; *) again=yes ;; esac ;;  # killed, or it never came to its "
    "folder\n"
    "esac\n"
    "if [ $again = yes ] && [ \"${{SLURM_RESTART_COUNT:-0}}\" -lt {1} ]; then\n"
    "  scontrol requeue \"$SLURM_JOB_ID\"\n"
    "fi\n"
    "exit $code\n";

}  // namespace

std::string ShellWord(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  return ShellQuoted(word);
}

std::string ShellLine(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back(ShellWord(word));
  return fmt::format("{}", fmt::join(quoted, " "));
}

std::string SlurmScript(const LaunchJob& job) {
  std::string text = fmt::format(
      "#!/bin/bash\n"
      "#SBATCH --job-name={}\n"
      "#SBATCH --nodes={}\n"
      "#SBATCH --ntasks={}\n"
      "#SBATCH --ntasks-per-node={}\n",
      job.name, job.nodes(), job.devices, job.devices_per_node);
  if (job.cpus > 0) text += fmt::format("#SBATCH --cpus-per-task={}\n", job.cpus);
  text +=
      "#SBATCH --requeue\n"
      "#SBATCH --open-mode=append\n"
      "#SBATCH --signal=TERM@120\n\n"
      "# Two minutes before the time is up all ranks write a checkpoint and end.  Each start goes "
      "on from the newest one.\n";
  std::vector<std::string> words = {"srun", job.mpi == Mpi::kOpenMpi ? "--mpi=pmix" : "--mpi=pmi2",
                                    "--kill-on-bad-exit=1"};
  if (job.cpus > 0) words.push_back(fmt::format("--cpus-per-task={}", job.cpus));
  words.push_back(job.program);
  words.insert(words.end(), job.words.begin(), job.words.end());
  const std::string folder = ShellWord(job.folder);
  text += fmt::format("rm -f {}/status.json\n{}\n", folder, ShellLine(words));
  return text + fmt::format(kSlurmEnd, folder, job.max_restarts);
}

std::string MpiJobYaml(const LaunchJob& job) {
  const auto replica = [&](const char* kind, int64_t replicas, const char* restart,
                           const std::string& pod) {
    return fmt::format(
               "    {}:\n"
               "      replicas: {}\n"
               "      restartPolicy: {}\n"
               "      template:\n"
               "        spec:\n",
               kind, replicas, restart) +
           Indented(10, pod);
  };
  return fmt::format(
             "apiVersion: kubeflow.org/v2beta1\n"
             "kind: MPIJob\n"
             "metadata:\n"
             "  name: {}\n"
             "spec:\n"
             "  slotsPerWorker: {}\n"
             "  mpiImplementation: {}\n"
             "  launcherCreationPolicy: WaitForWorkersReady\n"
             "  runPolicy:\n"
             "    backoffLimit: {}\n"
             "    cleanPodPolicy: Running\n"
             "  mpiReplicaSpecs:\n",
             job.name, job.devices_per_node, job.mpi == Mpi::kOpenMpi ? "OpenMPI" : "MPICH",
             job.max_restarts) +
         replica("Launcher", 1, "OnFailure",
                 PodSpec(job, "launcher", MpirunIn(job), /*computes=*/false)) +
         replica("Worker", job.nodes(), "Never", PodSpec(job, "worker", {}, /*computes=*/true));
}

std::string TrainJobYaml(const LaunchJob& job) {
  return RuntimeHead(job) +
         ReplicatedJob("node", "        template:\n",
                       PodSpec(job, "node", {"/usr/sbin/sshd", "-De"}, /*computes=*/true)) +
         ReplicatedJob("launcher",
                       "        dependsOn:\n"
                       "        - name: node\n"
                       "          status: Ready\n"
                       "        template:\n"
                       "          metadata:\n"
                       "            labels:\n"
                       "              trainer.kubeflow.org/trainjob-ancestor-step: trainer\n",
                       PodSpec(job, "node", {}, /*computes=*/false)) +
         "---\n" + TrainJobOf(job);
}

}  // namespace ridge::cli
