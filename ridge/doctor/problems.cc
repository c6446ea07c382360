#include "ridge/doctor/problems.h"

#include <fmt/format.h>

#include <algorithm>

namespace ridge {

const char* SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kBlocking:
      return "blocking";
    case Severity::kWarning:
      return "warning";
    case Severity::kNote:
      return "note";
  }
  return "";
}

void Judgement::Add(Severity severity, std::string subject, std::string text, std::string mend,
                    const CompatRow* row) {
  problems.push_back({severity, std::move(subject), std::move(text), std::move(mend),
                      row == nullptr ? "" : row->source});
}

std::vector<Problem> SortedProblems(Judgement judgement) {
  std::stable_sort(judgement.problems.begin(), judgement.problems.end(),
                   [](const Problem& a, const Problem& b) { return a.severity < b.severity; });
  return std::move(judgement.problems);
}

std::vector<Problem> FindProblems(const Probe& probe) {
  Judgement judgement = {probe, FrameworksOf(probe), {}};
  JudgeNvidia(judgement);
  JudgeAmd(judgement);
  JudgeFrameworks(judgement);
  JudgeHost(judgement);
  JudgeCluster(judgement);
  return SortedProblems(std::move(judgement));
}

bool AnyBlocking(const std::vector<Problem>& problems) {
  return std::any_of(problems.begin(), problems.end(), [](const Problem& problem) {
    return problem.severity == Severity::kBlocking;
  });
}

std::pair<std::string, std::string> SplitHint(const std::string& message) {
  constexpr std::string_view kHint = ". hint: ";
  const size_t at = message.rfind(kHint);
  if (at == std::string::npos) return {message, ""};
  return {message.substr(0, at), message.substr(at + kHint.size())};
}

bool HasNvidia(const Probe& probe) {
  const Probe::Cuda& cuda = probe.cuda;
  return cuda.pci_gpus > 0 || !cuda.gpus.empty() || !cuda.driver.empty() ||
         (cuda.answer && !cuda.answer->devices.empty());
}

bool HasAmd(const Probe& probe) { return probe.rocm.pci_gpus > 0 || !probe.rocm.gpus.empty(); }

namespace {

// The branch that Ubuntu's package is named for: the long-term one, or the only one left for it.
std::string UbuntuBranch(const std::string& least) {
  constexpr int kLongTerm = 580;
  return std::to_string(std::max(kLongTerm, Version(least).at(0)));
}

}  // namespace

std::string DriverMend(const Probe& probe, const std::string& least) {
  const Probe::System& system = probe.system;
  if (system.wsl) return "install NVIDIA's driver for Windows, then: wsl --shutdown";
  if (!system.jetson.empty()) return "flash a newer JetPack: it brings the board's driver";
  const std::string on = system.container.empty() ? "" : "on the host: ";
  if (system.distribution == "ubuntu") {
    return fmt::format("{}sudo apt-get install nvidia-driver-{} && sudo reboot", on,
                       UbuntuBranch(least));
  }
  if (system.distribution == "debian")
    return on + "sudo apt-get install nvidia-driver && sudo reboot";
  if (system.distribution == "fedora")
    return on + "sudo dnf install akmod-nvidia xorg-x11-drv-nvidia-cuda && sudo reboot";
  return fmt::format("{}install NVIDIA's driver {} and reboot", on,
                     least.empty() ? "for the GPU" : least + " or newer");
}

}  // namespace ridge
