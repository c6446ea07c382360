// What libcuda answers.  A child process asks it: a driver that crashes or does not answer takes
// nothing with it.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "ridge/backend/cuda/gpus.h"
#include "ridge/core/process.h"
#include "ridge/doctor/find_probe.h"

namespace ridge {
namespace {

constexpr int kMostSeconds = 10;

Probe::CudaAnswer Ask() {
  Probe::CudaAnswer answer;
  const Result<cuda::Driver> driver = cuda::LoadDriver();
  if (!driver.ok()) {
    answer.failure = driver.status().message();
    return answer;
  }
  answer.library = driver->path;
  answer.version = cuda::CudaVersionText(driver->version);
  const Result<std::vector<cuda::GpuFacts>> gpus = cuda::ListGpus(*driver);
  if (!gpus.ok()) answer.failure = gpus.status().message();
  if (!gpus.ok()) return answer;
  for (const cuda::GpuFacts& gpu : *gpus) {
    answer.devices.push_back(
        {gpu.name, fmt::format("{}.{}", gpu.major, gpu.minor), gpu.memory_bytes, gpu.uuid});
  }
  return answer;
}

[[noreturn]] void AnswerTo(int out) {
  ::alarm(kMostSeconds);
  Probe probe;
  probe.cuda.answer = Ask();
  const std::string text = ProbeToJson(probe).dump();
  for (size_t done = 0; done < text.size();) {
    const ssize_t got = ::write(out, text.data() + done, text.size() - done);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  ::_exit(0);
}

// Until its end, or for as long as a driver may take and a second more.
std::string ReadFrom(int in) {
  std::string text;
  const double end_s = MonotonicSeconds() + kMostSeconds + 1;
  pollfd ready = {in, POLLIN, 0};
  char buffer[4096];
  while (true) {
    const double left_s = end_s - MonotonicSeconds();
    if (left_s <= 0 || ::poll(&ready, 1, static_cast<int>(left_s * 1e3)) <= 0) return "";
    const ssize_t got = ::read(in, buffer, sizeof(buffer));
    if (got <= 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace

Probe::CudaAnswer AskDriver() {
  Probe::CudaAnswer none;
  none.failure = fmt::format("libcuda gave no answer within {} s", kMostSeconds);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return none;
  const pid_t child = ::fork();
  if (child == 0) AnswerTo(ends[1]);
  ::close(ends[1]);
  const std::string text = child < 0 ? "" : ReadFrom(ends[0]);
  ::close(ends[0]);
  if (child < 0) return none;
  ::kill(child, SIGKILL);
  int state = 0;
  ::waitpid(child, &state, text.empty() ? WNOHANG : 0);  // one that hangs in the kernel stays
  const Result<Probe> read = ParseProbe(text, "libcuda");
  return read.ok() && read->cuda.answer ? *read->cuda.answer : none;
}

}  // namespace ridge
