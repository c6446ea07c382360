#include "ridge/measure/time_sums.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "ridge/core/median.h"
#include "ridge/core/process.h"
#include "ridge/dist/agreement.h"
#include "ridge/dist/gather.h"
#include "ridge/dist/tree_sum.h"
#include "ridge/runtime/block_adder.h"
#include "ridge/runtime/staged_ranks.h"

namespace ridge {
namespace {

constexpr int64_t kFewestRounds = 7, kMostRounds = 200;

// A block of one rank's and the sum over it.
class TimedSum {
 public:
  // `over`: the ranks, for the memory of the device.  `memory`: BytesFor() them.
  static Result<std::unique_ptr<TimedSum>> Create(Communicator& ranks, Communicator& over,
                                                  Backend& backend, int threads, Memory& memory,
                                                  int64_t bytes, bool bf16) {
    std::unique_ptr<TimedSum> sum(new TimedSum(ranks, over, backend, threads, memory, bytes, bf16));
    if (!memory.host_visible()) {
      RIDGE_ASSIGN_OR_RETURN(sum->adder_,
                             BlockAdder::Create(backend, sum->block_, {sum->sum_.chunk()}));
    }
    return sum;
  }

  // Of either type.
  static int64_t BytesFor(const Communicator& ranks, int64_t bytes, bool host_visible) {
    const SliceShare share = ShareOf(ranks);
    const auto scratch = [&](bool bf16) {
      return SumScratchBytes(share, BlockOf(bytes, bf16, host_visible).wire());
    };
    return bytes + std::max(scratch(false), scratch(true));
  }

  // Of this rank.
  Result<double> Run() {
    if (!adder_) std::fill(values_, values_ + count_, 1.0F);
    RIDGE_RETURN_IF_ERROR(Barrier(ranks_));
    const double begin_s = MonotonicSeconds();
    RIDGE_RETURN_IF_ERROR(adder_ ? RunOnDevice() : RunOnHost());
    return MonotonicSeconds() - begin_s;
  }

 private:
  TimedSum(Communicator& ranks, Communicator& over, Backend& backend, int threads, Memory& memory,
           int64_t bytes, bool bf16)
      : ranks_(ranks),
        device_(backend.device()),
        threads_(threads),
        values_(reinterpret_cast<float*>(memory.data())),
        count_(bytes / static_cast<int64_t>(sizeof(float))),
        block_(BlockOf(bytes, bf16, memory.host_visible())),
        sum_(over, ShareOf(ranks), block_, {{memory.data()}, memory.data() + bytes}) {}

  Status RunOnHost() {
    return sum_.Run([this](const TreeSum::Work& work) {
      device_.ForEachPart(threads_, [&](int part) { work(part, threads_); });
    });
  }

  Status RunOnDevice() {
    Stream& stream = device_.stream(0);
    const auto add = [&](const std::byte* left, const std::byte* right, std::byte* to) {
      return adder_->Add(stream, left, right, to);
    };
    RIDGE_RETURN_IF_ERROR(sum_.Run(TreeSum::Add(add)));
    return stream.Synchronize();
  }

  static SliceShare ShareOf(const Communicator& ranks) {
    return {ranks.size(), ranks.rank(), ranks.size()};
  }
  // In segments where a plan has them (plan/tree_sums.h).
  static SumBlock BlockOf(int64_t bytes, bool bf16, bool host_visible) {
    return {{{0, bytes / static_cast<int64_t>(sizeof(float)), DType::kF32, bf16}},
            bytes,
            host_visible ? kSegmentBytes : 0};
  }

  Communicator& ranks_;
  Device& device_;
  const int threads_;
  float* const values_;
  const int64_t count_;
  const SumBlock block_;
  TreeSum sum_;
  std::optional<BlockAdder> adder_;  // where the host does not reach the memory
};

// By round, of the slowest rank.
Result<std::vector<double>> RunRounds(Communicator& ranks, TimedSum& sum, int64_t rounds) {
  std::vector<double> mine_s;
  for (int64_t round = 0; round < rounds; ++round) {
    RIDGE_ASSIGN_OR_RETURN(const double s, sum.Run());
    mine_s.push_back(s);
  }
  RIDGE_ASSIGN_OR_RETURN(const auto all_s, Agreement(&ranks).All(mine_s));
  for (const std::vector<double>& of_rank : all_s) {
    for (size_t round = 0; round < mine_s.size(); ++round)
      mine_s[round] = std::max(mine_s[round], of_rank[round]);
  }
  return mine_s;
}

Result<double> TimeOne(Communicator& ranks, TimedSum& sum, double size_s) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<double> first_s, RunRounds(ranks, sum, 3));
  const double once_s = std::max(1e-7, *std::min_element(first_s.begin(), first_s.end()));
  const auto rounds = static_cast<int64_t>(
      std::clamp(std::ceil(size_s / once_s), double{kFewestRounds}, double{kMostRounds}));
  RIDGE_ASSIGN_OR_RETURN(std::vector<double> all_s, RunRounds(ranks, sum, rounds));
  return LowerQuantile(std::move(all_s), 0.25);
}

}  // namespace

Result<std::vector<SumTime>> TimeSums(Communicator& ranks, Backend& backend, int threads,
                                      const SumRequest& request) {
  const int64_t most = std::max(request.most_bytes, request.least_bytes);
  Device& device = backend.device();
  RIDGE_ASSIGN_OR_RETURN(
      const std::unique_ptr<Memory> memory,
      device.Allocate(TimedSum::BytesFor(ranks, most, device.memory_space().host_visible)));
  Communicator* over = memory->host_visible() ? &ranks : ranks.of_device_memory();
  std::unique_ptr<Communicator> staged;
  if (over == nullptr) {
    RIDGE_ASSIGN_OR_RETURN(staged,
                           StageRanks(ranks, device, 2 * (most + ranks.size() * kChunkLine)));
    over = staged.get();
  }
  std::vector<SumTime> times;
  for (int64_t bytes = request.least_bytes; bytes <= most; bytes *= 4) {
    SumTime time = {bytes};
    for (const bool bf16 : {false, true}) {
      double& seconds = bf16 ? time.bf16_seconds : time.seconds;
      seconds = time.seconds;
      if (bf16 && !memory->host_visible()) continue;  // nothing is packed there
      RIDGE_ASSIGN_OR_RETURN(
          const std::unique_ptr<TimedSum> sum,
          TimedSum::Create(ranks, *over, backend, threads, *memory, bytes, bf16));
      RIDGE_ASSIGN_OR_RETURN(seconds, TimeOne(ranks, *sum, request.size_s));
    }
    times.push_back(time);
  }
  return times;
}

}  // namespace ridge
