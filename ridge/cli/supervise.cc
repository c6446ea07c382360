#include "ridge/cli/supervise.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "ridge/cli/child_process.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/core/files.h"
#include "ridge/core/process.h"
#include "ridge/core/units.h"
#include "ridge/train/store/checkpoint.h"

namespace ridge::cli {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(100);
constexpr auto kPause = std::chrono::seconds(1);  // before a restart
constexpr int kPollsBetweenLooks = 10;
constexpr double kUntilLauncherEnds_s = 15;  // once its ranks have

volatile std::sig_atomic_t asked = 0;  // the first signal that asked to stop
volatile pid_t launcher = 0;

// SIGUSR1 is the one that both MPIs pass on and that leaves time for a checkpoint.
void AskRanks(int signal) {
  if (signal == SIGINT && asked == SIGINT) {
    if (launcher > 0) kill(-launcher, SIGKILL);
    _exit(kExitInterrupted);
  }
  asked = signal;
  if (launcher > 0) kill(launcher, SIGUSR1);
}

class Signals {
 public:
  Signals() {
    asked = 0;
    struct sigaction action {};
    action.sa_handler = AskRanks;
    action.sa_flags = SA_RESTART;
    for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU})
      sigaction(signal, &action, nullptr);
  }
};

// In a group of its own, so that Ctrl-C of a terminal comes here alone.
[[noreturn]] void BecomeLauncher(char* const* argv) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGUSR1);
  if (std::freopen("/dev/null", "r", stdin) == nullptr) _exit(127);
  unsetenv("RIDGE_DEVICES");
  execv(argv[0], argv);
  _exit(127);
}

Result<pid_t> Start(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) BecomeLauncher(argv.data());
  if (child < 0) return Status(ErrorCode::kUnavailable, "no process can be started");
  return child;
}

bool HasEnded(const std::string& folder) {
  const Result<std::optional<RunStatus>> status = ReadRunStatus(folder);
  return status.ok() && *status && (*status)->state != RunPhase::kRunning;
}

// Whether a process has children; true where the system does not say.
bool HasChildren(pid_t process) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const fs::directory_entry& thread :
       fs::directory_iterator(fmt::format("/proc/{}/task", process), error)) {
    const Result<std::string> children = ReadFile(thread.path() / "children", 1 << 20);
    if (!children.ok() || !children->empty()) return true;
  }
  return static_cast<bool>(error);
}

// Waits for mpirun.  One that stays when its ranks have ended is killed: over a network that is
// down, and Open MPI's when a rank was killed while it started.
int WaitForLauncher(pid_t child, const std::string& folder) {
  double needed_s = MonotonicSeconds();
  for (int polls = 0;; ++polls) {
    int state = 0;
    const pid_t done = waitpid(child, &state, WNOHANG);
    if (done == child) return ExitCodeIn(state);
    if (done < 0 && errno != EINTR) return kExitFailed;
    if (polls % kPollsBetweenLooks == 0 && HasChildren(child) && !HasEnded(folder))
      needed_s = MonotonicSeconds();
    if (MonotonicSeconds() - needed_s > kUntilLauncherEnds_s) kill(-child, SIGKILL);
    std::this_thread::sleep_for(kPoll);
  }
}

int64_t NewestCheckpoint(const std::string& folder) {
  const std::vector<int64_t> steps = Checkpoints(folder + "/checkpoints").Steps();
  return steps.empty() ? 0 : steps.front();
}

Result<Attempt> RunOnce(const LaunchJob& job, const std::vector<std::string>& command) {
  Attempt attempt;
  attempt.checkpoint_before = NewestCheckpoint(job.folder);
  std::error_code ignored;
  std::filesystem::remove(job.folder + "/" + kStatusFile, ignored);  // it is of another attempt
  RIDGE_ASSIGN_OR_RETURN(const pid_t child, Start(command));
  launcher = child;
  if (asked != 0) kill(child, SIGUSR1);
  attempt.code = WaitForLauncher(child, job.folder);
  launcher = 0;
  const Result<std::optional<RunStatus>> status = ReadRunStatus(job.folder);
  if (status.ok()) attempt.status = *status;
  attempt.checkpoint_after = NewestCheckpoint(job.folder);
  attempt.asked = asked != 0;
  return attempt;
}

// Of a launcher, where the run itself had no word: 2 to 7 are ours.
bool IsOwnRefusal(int code) { return code >= kExitUsage && code <= kExitQualityGate; }

int FailureCode(int code) {
  return IsOwnRefusal(code) || code == kExitLateRank ? code : kExitFailed;
}

}  // namespace

RestartPolicy::Decision RestartPolicy::Again(const std::string& what, bool progress) {
  without_progress_ = progress ? 0 : without_progress_ + 1;
  if (without_progress_ > limits_.max_restarts) {
    return {false, kExitFailed,
            fmt::format("{}; {} without a newer checkpoint are enough. hint: --max-restarts", what,
                        FormatCountOf(limits_.max_restarts, "restart"))};
  }
  if (without_progress_ > 1) devices_ = std::max(limits_.min_devices, devices_ - 1);
  return {true, 0,
          fmt::format("{}; starting again on {}{}", what, FormatCountOf(devices_, "device"),
                      progress ? ""
                               : fmt::format(" (restart {} of {} without a newer checkpoint)",
                                             without_progress_, limits_.max_restarts))};
}

RestartPolicy::Decision RestartPolicy::After(const Attempt& attempt) {
  const bool progress = attempt.checkpoint_after > attempt.checkpoint_before;
  const bool spoke = attempt.status.has_value();
  const RunPhase state = spoke ? attempt.status->state : RunPhase::kRunning;
  if (spoke && state == RunPhase::kDone) return {false, kExitOk, ""};
  if (attempt.asked) {
    const bool saved = attempt.checkpoint_after > 0;
    return {false, saved ? kExitStopped : kExitInterrupted,
            saved ? fmt::format("stopped, checkpoint at step {}", attempt.checkpoint_after)
                  : "stopped before the first checkpoint"};
  }
  if (spoke && state == RunPhase::kStopped)
    return Again(
        fmt::format("a rank was asked to stop, checkpoint at step {}", attempt.checkpoint_after),
        progress);
  if (spoke && state == RunPhase::kFailed) {
    if (attempt.status->may_retry) return Again("failed: " + attempt.status->why, progress);
    return {false, FailureCode(attempt.code), "failed: " + attempt.status->why};
  }
  if (!spoke && IsOwnRefusal(attempt.code)) return {false, attempt.code, ""};  // it said why
  return Again(
      fmt::format(
          "ended without a word (mpirun's exit code is {}), newest checkpoint: {}", attempt.code,
          attempt.checkpoint_after > 0 ? fmt::format("step {}", attempt.checkpoint_after) : "none"),
      progress);
}

namespace {

// Nobody knows which device is gone.
std::vector<std::string> WithEqualShares(const std::vector<std::string>& words) {
  std::vector<std::string> equal;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--shares") {
      ++i;
    } else if (!words[i].starts_with("--shares=")) {
      equal.push_back(words[i]);
    }
  }
  equal.insert(equal.end(), {"--shares", "equal"});
  return equal;
}

}  // namespace

Result<int> Supervise(const LaunchJob& job, const Mpirun& mpirun,
                      const std::vector<std::string>& first, const RestartPolicy::Limits& limits,
                      const std::function<void(const std::string&)>& say) {
  const Signals signals;
  RestartPolicy policy(limits);
  for (int64_t number = 1;; ++number) {
    std::vector<std::string> words = {job.program};
    const std::vector<std::string>& more = number == 1 ? first : job.words;
    words.insert(words.end(), more.begin(), more.end());
    if (job.has_shares && policy.devices() < limits.devices) words = WithEqualShares(words);
    RIDGE_ASSIGN_OR_RETURN(
        const Attempt attempt,
        RunOnce(job,
                MpirunWords(mpirun, {policy.devices(), PhysicalCores(), geteuid() == 0}, words)));
    const RestartPolicy::Decision decision = policy.After(attempt);
    if (!decision.text.empty()) say(fmt::format("attempt {}: {}", number, decision.text));
    if (!decision.again) return decision.code;
    for (auto waited = kPoll * 0; waited < kPause && asked == 0; waited += kPoll)
      std::this_thread::sleep_for(kPoll);
    if (asked != 0) return attempt.checkpoint_after > 0 ? kExitStopped : kExitInterrupted;
  }
}

}  // namespace ridge::cli
