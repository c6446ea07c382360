// NCCL's groups on a library whose ranks are threads here: what is sent arrives, in order, and what
// fails is named.
#include "ridge/backend/cuda/nccl/nccl.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include "ridge/runtime/nccl_ranks.h"
#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {
namespace {

using cuda::Nccl;
using cuda::NcclGroup;

cuda::LibrarySearch FakeFolder() { return {.before = {RIDGE_FAKE_CUDA_FOLDER}, .behind = {}}; }

Nccl Opened() {
  Result<Nccl> nccl = Nccl::Open(FakeFolder());
  EXPECT_TRUE(nccl.ok()) << nccl.status().message();
  return std::move(*nccl);
}

// A group of so many ranks, which are threads, each with a GPU of its own.
void RunGroup(int ranks,
              const std::function<void(std::unique_ptr<NcclGroup>, cuda::CudaDevice&)>& run) {
  const FakeGpu first(
      {{"RIDGE_FAKE_CUDA_DEVICES", std::to_string(ranks)}, {"RIDGE_FAKE_CUDA_DELAY_US", "200"}});
  const Nccl nccl = Opened();
  const Result<cuda::NcclId> id = nccl.MakeId();
  ASSERT_TRUE(id.ok()) << id.status().message();
  // The fake driver has all streams of the process in one list, which one thread changes.
  std::vector<std::unique_ptr<cuda::CudaDevice>> devices;
  for (int rank = 0; rank < ranks; ++rank) {
    auto device = cuda::CudaDevice::Open(first.driver, rank);
    ASSERT_TRUE(device.ok()) << device.status().message();
    devices.push_back(std::move(*device));
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      cuda::CudaDevice& device = *devices[static_cast<size_t>(rank)];
      auto group = NcclGroup::Join(nccl, device, *id, rank, ranks);
      ASSERT_TRUE(group.ok()) << group.status().message();
      run(std::move(*group), device);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Rank r sends kCount numbers from 1000 r + 100 to + round to each other rank.
TEST(NcclGroupTest, WhatRanksSendArrivesInTheOrderOfTheirExchanges) {
  for (const int ranks : {2, 3}) {
    RunGroup(ranks, [ranks](std::unique_ptr<NcclGroup> group, cuda::CudaDevice& device) {
      const std::unique_ptr<Memory> out = Allocated(device, ranks * kBytes);
      const std::unique_ptr<Memory> in = Allocated(device, ranks * kBytes);
      Stream& stream = device.stream(0);
      std::vector<std::span<const std::byte>> sends;
      std::vector<std::span<std::byte>> receives;
      for (int other = 0; other < ranks; ++other) {
        sends.emplace_back(out->data() + other * kBytes, static_cast<size_t>(kBytes));
        receives.emplace_back(in->data() + other * kBytes, static_cast<size_t>(kBytes));
      }
      for (int round = 0; round < 5; ++round) {
        std::vector<std::vector<int64_t>> sent, received;
        for (int other = 0; other < ranks; ++other) {
          sent.push_back(Numbers(1000000 * group->rank() + 10000 * other + round));
          received.push_back(Numbers(0));
          stream.Upload(out->data() + other * kBytes, sent.back().data(), kBytes);
        }
        ASSERT_TRUE(stream.Synchronize().ok());
        ASSERT_TRUE(group->Exchange(sends, receives).ok());
        for (int other = 0; other < ranks; ++other)
          stream.Download(received[static_cast<size_t>(other)].data(), in->data() + other * kBytes,
                          kBytes);
        ASSERT_TRUE(stream.Synchronize().ok());
        for (int other = 0; other < ranks; ++other) {
          if (other == group->rank()) continue;
          EXPECT_EQ(received[static_cast<size_t>(other)],
                    Numbers(1000000 * other + 10000 * group->rank() + round));
        }
      }
      EXPECT_EQ(group->sent_bytes(), 5 * (ranks - 1) * kBytes);
    });
  }
}

TEST(NcclGroupTest, WhatFailsIsNamedWithItsReason) {
  for (const auto& [function, text] :
       {std::pair("ncclSend", "ncclSend failed: unhandled cuda error (1)"),
        {"ncclRecv", "ncclRecv failed: unhandled cuda error (1)"},
        {"ncclGroupStart", "ncclGroupStart failed: unhandled cuda error (1)"},
        {"ncclGroupEnd", "ncclGroupEnd failed: unhandled cuda error (1)"}}) {
    const std::string call = std::string(function) + ":1:1";
    RunGroup(2, [&, text = text](std::unique_ptr<NcclGroup> group, cuda::CudaDevice& device) {
      if (group->rank() == 1) return;  // rank 0 is alone when it fails
      const Variables fails(Settings{{"RIDGE_FAKE_NCCL_FAIL", call}});
      const std::unique_ptr<Memory> memory = Allocated(device, 2 * kBytes);
      const std::span<std::byte> half(memory->data(), static_cast<size_t>(kBytes));
      EXPECT_EQ(group->Exchange({{}, half}, {{}, half}).message(), text);
    });
  }
  const Variables fails(Settings{{"RIDGE_FAKE_NCCL_FAIL", "ncclGetUniqueId:1:2"}});
  EXPECT_EQ(Opened().MakeId().status().message(),
            "ncclGetUniqueId failed: unhandled system error (2)");
}

// Rank 1 never comes.
TEST(NcclGroupTest, AnExchangeThatWaitsForAnotherRankCanBeEnded) {
  RunGroup(2, [&](std::unique_ptr<NcclGroup> group, cuda::CudaDevice& device) {
    if (group->rank() == 1) return;
    const std::unique_ptr<Memory> memory = Allocated(device, 2 * kBytes);
    const std::span<std::byte> half(memory->data(), static_cast<size_t>(kBytes));
    ASSERT_TRUE(group->Exchange({{}, half}, {{}, half}).ok());
    group->Abort();
    EXPECT_EQ(device.stream(0).Synchronize().code(), ErrorCode::kDevice);
  });
}

// Ranks that only note when this one waits.
class NotedRanks final : public Communicator {
 public:
  NotedRanks(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  int rank() const override { return rank_; }
  int size() const override { return ranks_; }
  int64_t sent_bytes() const override { return 0; }
  Status Exchange(const std::vector<std::span<const std::byte>>&,
                  const std::vector<std::span<std::byte>>&) override {
    return Status(ErrorCode::kInternal, "the GPUs exchange by NCCL");
  }
  void Enter(int64_t bytes) override {
    bytes_ = bytes;
    if (at_entry) at_entry();
    inside_ = true;
  }
  void Leave() override { inside_ = false; }

  bool inside() const { return inside_; }
  int64_t bytes() const { return bytes_; }
  std::function<void()> at_entry;

 private:
  const int rank_, ranks_;
  std::atomic<bool> inside_{false};
  std::atomic<int64_t> bytes_{0};
};

// Rank 0 has work of its own, and rank 1 sends when it sees rank 0 wait.
TEST(NcclRanks, ARankIsInAnExchangeFromTheEndOfItsWorkUntilTheBytesAreThere) {
  NotedRanks first(0, 2), second(1, 2);
  RunGroup(2, [&](std::unique_ptr<NcclGroup> group, cuda::CudaDevice& device) {
    NotedRanks& own = group->rank() == 0 ? first : second;
    Stream& stream = device.stream(0);
    const std::unique_ptr<Memory> memory = Allocated(device, 2 * kBytes);
    const std::span<std::byte> half(memory->data(), static_cast<size_t>(kBytes));
    const size_t other = 1 - static_cast<size_t>(group->rank());
    std::vector<std::span<const std::byte>> sends(2);
    std::vector<std::span<std::byte>> receives(2);
    sends[other] = receives[other] = half;
    const auto ranks = RanksOfGroup(own, std::move(group), stream);
    const std::vector<int64_t> worked = Numbers(7);
    std::vector<int64_t> seen = Numbers(0);
    if (own.rank() == 0) {
      for (int i = 0; i < 50; ++i) stream.Upload(memory->data(), worked.data(), kBytes);
      stream.Download(seen.data(), memory->data(), kBytes);
      own.at_entry = [&] { EXPECT_EQ(seen, worked); };
    } else {
      while (!first.inside()) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      EXPECT_TRUE(first.inside());
    }
    ASSERT_TRUE(ranks->Exchange(sends, receives).ok());
    EXPECT_FALSE(own.inside());
    EXPECT_EQ(own.bytes(), 2 * kBytes);
  });
}

TEST(Nccl, TellsItsVersionAndItsFile) {
  const Nccl nccl = Opened();
  EXPECT_EQ(nccl.version, "2.28.3");
  EXPECT_TRUE(std::filesystem::exists(nccl.path));
}

}  // namespace
}  // namespace ridge::fake_cuda
