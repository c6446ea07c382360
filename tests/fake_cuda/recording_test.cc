// CUDA graphs: what a stream records runs as it was told, each time that it is played.
#include <functional>
#include <numeric>

#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {
namespace {

constexpr int64_t kCount = 1000, kBytes = kCount * static_cast<int64_t>(sizeof(int64_t));

const Settings kLate = {{"RIDGE_FAKE_CUDA_DELAY_US", "100"}};

// A record of "copy the first part to the second on another stream, then clear the first".
Result<std::unique_ptr<Recording>> Recorded(cuda::CudaDevice& device, std::byte* at) {
  Stream &main = device.stream(0), &other = device.stream(1);
  const std::unique_ptr<Event> begun = device.MakeEvent(), copied = device.MakeEvent();
  main.BeginRecording();
  main.Record(*begun);
  other.Wait(*begun);
  other.Copy(at + kBytes, at, kBytes);
  other.Record(*copied);
  main.Wait(*copied);
  main.Clear(at, kBytes);
  return main.EndRecording();
}

TEST(CudaRecording, RunsAsOftenAsItIsPlayedAndNotBefore) {
  {
    FakeGpu gpu(kLate);
    const auto arena = Allocated(*gpu.device, 2 * kBytes);
    std::byte* const at = arena->data();
    Stream& main = gpu.device->stream(0);
    ASSERT_TRUE(main.records());
    EXPECT_FALSE(gpu.device->stream(1).records());
    main.Clear(at, 2 * kBytes);
    const auto recording = Recorded(*gpu.device, at);
    ASSERT_TRUE(recording.ok()) << recording.status().message();
    std::vector<int64_t> from(kCount), to(2 * kCount);
    for (int64_t round : {7, 8}) {
      std::iota(from.begin(), from.end(), round);
      main.Upload(at, from.data(), kBytes);
      main.Download(to.data(), at, 2 * kBytes);
      ASSERT_TRUE(main.Synchronize().ok());
      EXPECT_EQ(to[0], round);  // it has not run since
      EXPECT_NE(to[kCount], round);
      main.Play(**recording);
      main.Download(to.data(), at, 2 * kBytes);
      ASSERT_TRUE(main.Synchronize().ok());
      EXPECT_EQ(to[0], 0);
      EXPECT_EQ(std::vector<int64_t>(to.begin() + kCount, to.end()), from);
    }
    EXPECT_EQ(gpu.hooks.calls("cuGraphLaunch"), 2);
  }
  EXPECT_EQ(Hooks(*LoadFake()).alive(), 0);
}

// What a play leaves of "copy the first number to the second" and "clear the first", of which the
// clearing does not wait.
TEST(CudaRecording, WorkThatDoesNotWaitRunsInAnyOrder) {
  {
    FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}});
    const auto arena = Allocated(*gpu.device, 2 * kBytes);
    std::byte* const at = arena->data();
    Stream& main = gpu.device->stream(0);
    ASSERT_TRUE(main.branches());
    main.BeginRecording();
    const int begun = main.Mark();
    main.Copy(at + kBytes, at, kBytes);
    const int copied = main.Mark();
    main.RunBehind(std::vector<int>{begun});
    main.Clear(at, kBytes);
    main.RunBehind(std::vector<int>{copied, main.Mark()});
    const auto recording = main.EndRecording();
    ASSERT_TRUE(recording.ok()) << recording.status().message();
    int cleared_first = 0;
    const std::vector<int64_t> from(kCount, 7);
    std::vector<int64_t> to(kCount);
    for (int round = 0; round < 50; ++round) {
      main.Upload(at, from.data(), kBytes);
      main.Play(**recording);
      main.Download(to.data(), at + kBytes, kBytes);
      ASSERT_TRUE(main.Synchronize().ok());
      cleared_first += to[0] == 0 ? 1 : 0;
    }
    EXPECT_GT(cleared_first, 5);
    EXPECT_LT(cleared_first, 45);
  }
  EXPECT_EQ(Hooks(*LoadFake()).alive(), 0);
}

// What a stream says of a record that begins on stream 0; `work` gets an event of before it.
std::string Ended(int ending,
                  const std::function<void(cuda::CudaDevice&, std::byte*, const Event&)>& work) {
  std::string said;
  {
    FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}});
    const auto arena = Allocated(*gpu.device, 2 * kBytes);
    const std::unique_ptr<Event> before = gpu.device->MakeEvent();
    gpu.device->stream(1).Record(*before);
    gpu.device->stream(0).BeginRecording();
    work(*gpu.device, arena->data(), *before);
    said = gpu.device->stream(ending).EndRecording().status().message();
  }
  EXPECT_EQ(Hooks(*LoadFake()).alive(), 0);
  return said;
}

// Stream 1 copies behind what stream 0 has told until now.
void Fork(cuda::CudaDevice& device, std::byte* at) {
  const std::unique_ptr<Event> begun = device.MakeEvent();
  device.stream(0).Record(*begun);
  device.stream(1).Wait(*begun);
  device.stream(1).Copy(at + kBytes, at, kBytes);
}

TEST(CudaRecording, ThatLeavesAForkUnjoinedIsRefused) {
  const auto forks = [](cuda::CudaDevice& device, std::byte* at, const Event&) {
    Fork(device, at);
    device.stream(0).Clear(at, kBytes);
  };
  EXPECT_EQ(Ended(0, forks),
            "cuda:0: cuStreamEndCapture failed: CUDA_ERROR_STREAM_CAPTURE_UNJOINED (904)");
  const auto joins_and_goes_on = [](cuda::CudaDevice& device, std::byte* at, const Event&) {
    Fork(device, at);
    const std::unique_ptr<Event> copied = device.MakeEvent();
    device.stream(1).Record(*copied);
    device.stream(0).Wait(*copied);
    device.stream(1).Clear(at + kBytes, kBytes);
  };
  EXPECT_EQ(Ended(0, joins_and_goes_on),
            "cuda:0: cuStreamEndCapture failed: CUDA_ERROR_STREAM_CAPTURE_UNJOINED (904)");
}

TEST(CudaRecording, WhoseForkDoesNothingIsTaken) {
  const auto waits = [](cuda::CudaDevice& device, std::byte* at, const Event&) {
    device.stream(0).Clear(at, kBytes);
    const std::unique_ptr<Event> cleared = device.MakeEvent();
    device.stream(0).Record(*cleared);
    device.stream(1).Wait(*cleared);
  };
  EXPECT_EQ(Ended(0, waits), "");
}

TEST(CudaRecording, IsEndedByTheStreamThatBeganIt) {
  const auto forks = [](cuda::CudaDevice& device, std::byte* at, const Event&) {
    Fork(device, at);
  };
  EXPECT_EQ(Ended(1, forks),
            "cuda:0: cuStreamEndCapture failed: CUDA_ERROR_STREAM_CAPTURE_UNMATCHED (903)");
}

TEST(CudaRecording, WaitsForNothingOfBeforeIt) {
  const auto waits = [](cuda::CudaDevice& device, std::byte*, const Event& before) {
    device.stream(0).Wait(before);
  };
  EXPECT_EQ(Ended(0, waits),
            "cuda:0: cuStreamWaitEvent failed: CUDA_ERROR_STREAM_CAPTURE_ISOLATION (905)");
}

TEST(CudaRecording, AnErrorInItStaysAndGivesEverythingBack) {
  for (const char* fail : {"cuMemsetD8Async:1:719", "cuStreamBeginCapture:1:900",
                           "cuStreamEndCapture:1:901", "cuGraphInstantiateWithFlags:1:719"}) {
    {
      FakeGpu gpu(Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}, {"RIDGE_FAKE_CUDA_FAIL", fail}});
      const auto arena = Allocated(*gpu.device, 2 * kBytes);
      const auto recording = Recorded(*gpu.device, arena->data());
      ASSERT_FALSE(recording.ok()) << fail;
      EXPECT_EQ(recording.status().code(), ErrorCode::kDevice) << recording.status().message();
    }
    EXPECT_EQ(Hooks(*LoadFake()).alive(), 0) << fail;
  }
}

}  // namespace
}  // namespace ridge::fake_cuda
