// The host: threads, memory and instructions of the processor.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "ridge/core/units.h"
#include "ridge/doctor/problems.h"

namespace ridge {
namespace {

bool Has(const std::vector<std::string>& list, const char* word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

const Framework* Find(const Judgement& judgement, FrameworkKind kind) {
  for (const Framework& framework : judgement.frameworks) {
    if (framework.kind == kind) return &framework;
  }
  return nullptr;
}

void JudgeOpenMp(Judgement& judgement) {
  const Probe::Threads& threads = judgement.probe.threads;
  for (const auto& [name, value] : {std::pair("OMP_NUM_THREADS", threads.omp_num_threads),
                                    {"OMP_THREAD_LIMIT", threads.omp_thread_limit}}) {
    if (!value || *value == threads.affinity) continue;
    if (*value < threads.affinity) {
      judgement.Add(
          Severity::kWarning, name,
          fmt::format("it is {}: programs use {} of {} cores", *value, *value, threads.affinity),
          fmt::format("unset {}", name));
    } else if (std::string_view(name) == "OMP_NUM_THREADS") {
      judgement.Add(Severity::kWarning, name,
                    fmt::format("it is {}, the process has {}: threads of other programs wait for "
                                "one another",
                                *value, FormatCountOf(threads.affinity, "core")),
                    fmt::format("export OMP_NUM_THREADS={}", threads.affinity));
    }
  }
}

// Libraries that start more threads than there are cores.
void JudgeSettings(Judgement& judgement) {
  const int64_t cores = judgement.probe.threads.affinity;
  for (const std::string& setting : judgement.probe.threads.settings) {
    const size_t sign = setting.find('=');
    const std::string name = setting.substr(0, sign);
    if (sign == std::string::npos || !name.ends_with("NUM_THREADS")) continue;
    if (std::atoll(setting.c_str() + sign + 1) <= cores) continue;
    judgement.Add(Severity::kWarning, name,
                  fmt::format("it is {}, the process has {}", setting.substr(sign + 1),
                              FormatCountOf(cores, "core")),
                  fmt::format("export {}={}", name, cores));
  }
}

// ridge obeys a container's quota; frameworks count the machine's cores.
void JudgeQuota(Judgement& judgement) {
  const Probe::Threads& threads = judgement.probe.threads;
  if (judgement.frameworks.empty() || threads.omp_num_threads) return;
  if (threads.used >= threads.affinity) return;
  judgement.Add(Severity::kWarning, "threads",
                fmt::format("the container may use {} of {} cores; {} starts a thread for each of "
                            "the {}",
                            threads.used, threads.affinity, judgement.frameworks.front().package,
                            threads.affinity),
                fmt::format("export OMP_NUM_THREADS={}", threads.used));
}

std::string MemoryMend(const Probe::System& system) {
  if (system.container == "kubernetes") return "raise resources.limits.memory of the pod";
  return system.container.empty() ? "end other programs, or raise the limit of the cgroup"
                                  : "docker run --memory 8g ...";
}

void JudgeMemory(Judgement& judgement) {
  constexpr int64_t kNothing = 0, kBlocking = int64_t{128} << 20, kSmall = int64_t{1} << 30;
  const Probe::Memory& memory = judgement.probe.memory;
  if (memory.usable_bytes == kNothing || memory.usable_bytes >= kSmall) return;
  judgement.Add(memory.usable_bytes < kBlocking ? Severity::kBlocking : Severity::kWarning,
                "memory",
                fmt::format("{} are usable of {}: few trainings fit",
                            FormatBytes(memory.usable_bytes), FormatBytes(memory.total_bytes)),
                MemoryMend(judgement.probe.system));
}

void JudgeSharedMemory(Judgement& judgement) {
  constexpr int64_t kSmall = int64_t{1} << 30;
  const Probe& probe = judgement.probe;
  const Framework* torch = Find(judgement, FrameworkKind::kPyTorch);
  if (torch == nullptr || probe.system.container.empty()) return;
  if (probe.memory.shared_bytes == 0 || probe.memory.shared_bytes >= kSmall) return;
  judgement.Add(Severity::kWarning, "/dev/shm",
                fmt::format("it has {}: workers of a DataLoader hand their batches over in it",
                            FormatBytes(probe.memory.shared_bytes)),
                "docker run --shm-size=8g ...");
}

void JudgeInstructions(Judgement& judgement) {
  const Probe& probe = judgement.probe;
  if (probe.system.machine != "x86_64") return;
  const Framework* tensorflow = Find(judgement, FrameworkKind::kTensorFlow);
  if (tensorflow != nullptr && !Has(probe.cpu.isa, "avx")) {
    judgement.Add(Severity::kBlocking, tensorflow->Title(),
                  fmt::format("its packages need AVX; {} has none", probe.cpu.name),
                  "build TensorFlow from source on this machine, or use another one");
  }
  if (!Has(probe.cpu.isa, "avx2")) {
    judgement.Add(Severity::kNote, "CPU",
                  fmt::format("{} has no AVX2: kernels take the slower SSE4.1", probe.cpu.name),
                  "use a CPU with AVX2 for long trainings");
  }
}

}  // namespace

void JudgeHost(Judgement& judgement) {
  JudgeOpenMp(judgement);
  JudgeSettings(judgement);
  JudgeQuota(judgement);
  JudgeMemory(judgement);
  JudgeSharedMemory(judgement);
  JudgeInstructions(judgement);
}

}  // namespace ridge
