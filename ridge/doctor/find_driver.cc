// What libcuda answers, and the compiler of kernels.  A child process asks libcuda: a driver that
// crashes or does not answer takes nothing with it.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <optional>

#include "ridge/backend/cuda/gpus.h"
#include "ridge/backend/cuda/nvrtc.h"
#include "ridge/core/process.h"
#include "ridge/doctor/find_probe.h"

namespace ridge {
namespace {

constexpr int kMostSeconds = 10;

Probe::CudaProperties PropertiesOf(const cuda::Driver& driver, int ordinal,
                                   const cuda::GpuFacts& gpu) {
  using enum cuda::DeviceAttribute;
  const auto of = [&](cuda::DeviceAttribute which) { return AttributeOf(driver, ordinal, which); };
  return {.device_id = ordinal,
          .pci_device_id = of(kPciDevice),
          .driver_version = driver.version,
          .tcc_driver = of(kTccDriver),
          .name = gpu.name,
          .architecture = 100 * gpu.major + 10 * gpu.minor,
          .sms = of(kMultiprocessors),
          .sm_clock_khz = of(kClockKhz),
          .memory_clock_khz = of(kMemoryClockKhz),
          .memory_bytes = gpu.memory_bytes,
          .l2_bytes = of(kL2Bytes),
          .most_block = {of(kMostBlockX), of(kMostBlockY), of(kMostBlockZ)},
          .most_grid = {of(kMostGridX), of(kMostGridY), of(kMostGridZ)},
          .warp_threads = of(kWarpThreads),
          .most_threads_of_block = of(kMostThreadsOfBlock),
          .most_threads_of_sm = of(kMostThreads),
          .most_blocks_of_sm = of(kMostBlocks),
          .registers_of_block = of(kRegistersOfBlock),
          .registers_of_sm = of(kRegisters),
          .shared_bytes_of_block = of(kSharedBytesOfBlock),
          .most_shared_bytes_of_block = of(kMostSharedBytesOfBlock),
          .reserved_shared_bytes_of_block = of(kReservedSharedBytesOfBlock),
          .cooperative_launch = of(kCooperativeLaunch)};
}

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
  for (int ordinal = 0; const cuda::GpuFacts& gpu : *gpus) {
    answer.devices.push_back({gpu.name, fmt::format("{}.{}", gpu.major, gpu.minor),
                              gpu.memory_bytes, gpu.uuid, PropertiesOf(*driver, ordinal++, gpu)});
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

// Until its end; none where a driver takes longer than it may, and a second more.
std::optional<std::string> ReadFrom(int in) {
  std::string text;
  const double end_s = MonotonicSeconds() + kMostSeconds + 1;
  pollfd ready = {in, POLLIN, 0};
  char buffer[4096];
  while (true) {
    const double left_s = end_s - MonotonicSeconds();
    if (left_s <= 0 || ::poll(&ready, 1, static_cast<int>(left_s * 1e3)) <= 0) return std::nullopt;
    const ssize_t got = ::read(in, buffer, sizeof(buffer));
    if (got <= 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
}

Probe::CudaAnswer NoAnswer(const std::string& text) {
  Probe::CudaAnswer none;
  none.failure = text + ". hint: sudo dmesg has what the driver said";
  return none;
}

Probe::CudaAnswer TooLate() {
  return NoAnswer(fmt::format("libcuda gave no answer within {} s", kMostSeconds));
}

// Of a child that ended with this state, without one.
Probe::CudaAnswer NoAnswerOf(int state) {
  if (WIFSIGNALED(state) && WTERMSIG(state) != SIGALRM) {
    return NoAnswer(
        fmt::format("libcuda ended the process that asked it, by signal {}", WTERMSIG(state)));
  }
  return TooLate();
}

}  // namespace

Probe::CudaAnswer AskDriver() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return NoAnswer("no pipe can be made");
  const pid_t child = ::fork();
  if (child == 0) AnswerTo(ends[1]);
  ::close(ends[1]);
  const std::optional<std::string> text = child < 0 ? "" : ReadFrom(ends[0]);
  ::close(ends[0]);
  if (child < 0) return NoAnswer("no process can be started");
  if (!text) {  // it hangs in the kernel, and is left to it
    ::kill(child, SIGKILL);
    return TooLate();
  }
  int state = 0;
  ::waitpid(child, &state, 0);
  const Result<Probe> read = ParseProbe(*text, "libcuda");
  return read.ok() && read->cuda.answer ? *read->cuda.answer : NoAnswerOf(state);
}

Result<Probe::Library> OpenNvrtc() {
  RIDGE_ASSIGN_OR_RETURN(const cuda::Nvrtc nvrtc, cuda::Nvrtc::Open());
  return Probe::Library{nvrtc.version(), nvrtc.path()};
}

}  // namespace ridge
