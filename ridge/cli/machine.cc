#include "ridge/cli/machine.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cpu/measure.h"
#include "ridge/backend/reference/reference_backend.h"
#include "ridge/core/threads.h"
#include "ridge/runtime/kernel_times.h"
#include "ridge/runtime/profile_store.h"

extern char** environ;

namespace ridge::cli {
namespace {

Status MeasureFailed(const std::string& why) {
  return Status(ErrorCode::kDevice,
                fmt::format("measuring this machine: {}. hint: ridge bench device", why));
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(fd, buffer, sizeof(buffer))) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

// What a child of this very program writes to stdout.
Result<std::string> OutputOfRidge(std::vector<std::string> words) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return MeasureFailed("no pipe");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  std::string text = error == 0 ? ReadAll(pipe_ends[0]) : "";
  close(pipe_ends[0]);
  if (error != 0) return MeasureFailed("the program can't start itself");
  int state = 0;
  while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) return text;
  return MeasureFailed("`ridge bench device --quick` failed");
}

// The child stores what it measured; its output is used in case that the cache can't be written.
Result<DeviceProfile> MeasureInChild(int threads) {
  RIDGE_ASSIGN_OR_RETURN(const std::string json,
                         OutputOfRidge({"ridge", "bench", "device", "--quick", "--threads",
                                        std::to_string(threads), "--json"}));
  return ProfileFromJson(json, "ridge bench device");
}

Result<std::unique_ptr<Backend>> MakeBackend(const MachineChoice& choice, int threads) {
  if (choice.backend == "reference") return MakeReferenceBackend();
  return MakeCpuBackend(
      threads, choice.conv == "direct" ? ConvKernels::kDirect : ConvKernels::kAuto,
      choice.kernels == "default" ? OfferedKernels::kUsual : OfferedKernels::kAll);
}

}  // namespace

Status CheckDevice(const std::string& flag, const std::string& device) {
  if (device == "cpu") return {};
  if (device == "cuda" || device.starts_with("cuda:")) {
    return Status(
        ErrorCode::kDevice,
        fmt::format("{} is '{}': this version of ridge runs on the CPU only. hint: {} cpu", flag,
                    device, flag));
  }
  return Status(ErrorCode::kInvalidArgument,
                fmt::format("{} is '{}'; it must be cpu or cuda[:N]", flag, device));
}

Result<OpenedMachine> OpenMachine(const MachineChoice& choice,
                                  const std::function<void(const std::string&)>& say) {
  RIDGE_RETURN_IF_ERROR(CheckDevice("--device", choice.device));
  const int threads = choice.threads > 0 ? static_cast<int>(choice.threads) : AvailableThreads();
  OpenedMachine opened;
  RIDGE_ASSIGN_OR_RETURN(
      opened.machine.profile, LoadOrMeasureProfile(CpuProfileId(threads), [&] {
        say("no profile of this machine yet: measuring a quick one (`ridge bench device` makes a "
            "better one)");
        return MeasureInChild(threads);
      }));
  RIDGE_ASSIGN_OR_RETURN(opened.backend, MakeBackend(choice, threads));
  opened.machine.backend = opened.backend.get();
  if (choice.kernels == "tuned" && choice.times && choice.backend == "cpu") {
    RIDGE_ASSIGN_OR_RETURN(KernelTimes times,
                           LoadKernelTimes(opened.machine.profile.id, CpuLibrary()));
    opened.machine.kernel_s = std::move(times.kernel_s);
  }
  return opened;
}

}  // namespace ridge::cli
