#include "ridge/report/device_bytes_report.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

DeviceBytes QuietRun() {
  DeviceBytes bytes;
  bytes.device = "cuda:0";
  bytes.planned = {
      .context = 530 * kMiB, .arena = 40 * kMiB, .kernels = 9 * kMiB, .graphs = 4 * kMiB};
  bytes.peak_bytes = 578 * kMiB;
  bytes.used = {.before = 2 * kMiB,
                .context = 532 * kMiB,
                .arena = 572 * kMiB,
                .kernels = 576 * kMiB,
                .graphs = 578 * kMiB,
                .end = 578 * kMiB};
  bytes.planned_staging = bytes.staging = 3 * kMiB;
  return bytes;
}

TEST(DeviceBytesReport, HasARowAPartAndTheVerdict) {
  EXPECT_EQ(DeviceBytesReport(QuietRun(), Terminal{}),
            "  bytes of cuda:0      planned  measured     error\n"
            "  before the run             -  2.00 MiB         -\n"
            "  context              530 MiB   530 MiB    +0.0 %\n"
            "  arena               40.0 MiB  40.0 MiB    +0.0 %\n"
            "  kernels             9.00 MiB  4.00 MiB  +125.0 %\n"
            "  graphs              4.00 MiB  2.00 MiB  +100.0 %\n"
            "  growth in the run        0 B       0 B         -\n"
            "  locked on the host  3.00 MiB  3.00 MiB    +0.0 %\n"
            "cuda:0: bytes proven: 578 MiB planned, 578 MiB in use at the end\n");
}

TEST(DeviceBytesReport, SaysWhereTheFirstReadingIsMissing) {
  DeviceBytes bytes = QuietRun();
  bytes.used.before.reset();
  bytes.no_before = "libnvidia-ml.so.1 is not found";
  const std::string text = DeviceBytesReport(bytes, Terminal{});
  EXPECT_NE(text.find("before the run             -         -         -\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("\ncuda:0: the context is counted with all that was in use before it: "
                      "libnvidia-ml.so.1 is not found\n"),
            std::string::npos)
      << text;
}

TEST(DeviceBytesVerdict, ALeakIsSaidWithItsBytes) {
  DeviceBytes bytes = QuietRun();
  bytes.used.end += 4 * kMiB;
  EXPECT_EQ(DeviceBytesVerdict(bytes),
            "cuda:0: a leak: 4.00 MiB more are in use at the end than before the first step");
  bytes.used.before.reset();
  EXPECT_EQ(DeviceBytesVerdict(bytes),
            "cuda:0: a leak: 4.00 MiB more are in use at the end than before the first step, or "
            "another process took them");
}

TEST(DeviceBytesVerdict, MoreThanPlannedHasBothNumbers) {
  DeviceBytes bytes = QuietRun();
  bytes.peak_bytes = 576 * kMiB;
  EXPECT_EQ(DeviceBytesVerdict(bytes),
            "cuda:0: more than planned: 578 MiB are in use at the end, 576 MiB were planned");
}

TEST(DeviceBytesVerdict, OtherProcessesAreNamedWithWhatTheyHold) {
  DeviceBytes bytes = QuietRun();
  bytes.others = {1, 512 * kMiB};
  EXPECT_EQ(DeviceBytesVerdict(bytes),
            "cuda:0: shared, bytes not proven: 1 other process holds 512 MiB");
  bytes.others = {2, 512 * kMiB};
  EXPECT_EQ(DeviceBytesVerdict(bytes),
            "cuda:0: shared, bytes not proven: 2 other processes hold 512 MiB");
  bytes.others = {2, std::nullopt};
  EXPECT_EQ(DeviceBytesVerdict(bytes),
            "cuda:0: shared, bytes not proven: 2 other processes use it, and NVML does not tell "
            "how much");
  bytes.others = {};
  bytes.used.end -= 4 * kMiB;
  EXPECT_EQ(DeviceBytesVerdict(bytes),
            "cuda:0: shared, bytes not proven: 4.00 MiB were given back during the run, by another "
            "process");
}

}  // namespace
}  // namespace ridge
