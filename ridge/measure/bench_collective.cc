#include "ridge/measure/bench_collective.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "ridge/core/median.h"
#include "ridge/core/process.h"
#include "ridge/dist/gather.h"

namespace ridge {
namespace {

constexpr int64_t kLeastBytes = 1024;
constexpr int kBlocks = 5;
constexpr int kMostRepetitions = 10'000;

using Sends = std::vector<std::span<const std::byte>>;
using Receives = std::vector<std::span<std::byte>>;

// One exchange between the first `count` ranks; the others move nothing.
struct TimedCollective {
  Sends sends;
  Receives receives;
};

struct Buffers {
  explicit Buffers(int64_t bytes) : out(static_cast<size_t>(bytes)), in(out.size()) {}
  std::vector<std::byte> out, in;
};

bool TakesPart(const Communicator& ranks, int64_t count) { return ranks.rank() < count; }

TimedCollective AllToAll(const Communicator& ranks, int64_t count, int64_t bytes,
                         Buffers& buffers) {
  TimedCollective all = {Sends(static_cast<size_t>(ranks.size())),
                         Receives(static_cast<size_t>(ranks.size()))};
  if (!TakesPart(ranks, count)) return all;
  const auto part = static_cast<size_t>(bytes / count);
  for (size_t r = 0; r < static_cast<size_t>(count); ++r) {
    all.sends[r] = std::span<const std::byte>(buffers.out).subspan(r * part, part);
    all.receives[r] = std::span<std::byte>(buffers.in).subspan(r * part, part);
  }
  return all;
}

TimedCollective AllGather(const Communicator& ranks, int64_t count, int64_t bytes,
                          Buffers& buffers) {
  TimedCollective all = AllToAll(ranks, count, bytes, buffers);
  if (!TakesPart(ranks, count)) return all;
  const std::span<const std::byte> mine = all.sends.front();
  std::fill(all.sends.begin(), all.sends.begin() + count, mine);
  return all;
}

// Seconds of one, by the slowest rank; the same number at all ranks.
Result<double> TimeBlock(Communicator& ranks, const TimedCollective& collective,
                         int64_t repetitions) {
  RIDGE_RETURN_IF_ERROR(Barrier(ranks));
  const double start_s = MonotonicSeconds();
  for (int64_t i = 0; i < repetitions; ++i)
    RIDGE_RETURN_IF_ERROR(ranks.Exchange(collective.sends, collective.receives));
  const double mine_s = (MonotonicSeconds() - start_s) / static_cast<double>(repetitions);
  RIDGE_ASSIGN_OR_RETURN(const std::vector<double> all_s, GatherFromAll(ranks, mine_s));
  return *std::max_element(all_s.begin(), all_s.end());
}

Result<double> Time(Communicator& ranks, const TimedCollective& collective, double block_s) {
  RIDGE_RETURN_IF_ERROR(TimeBlock(ranks, collective, 2).status());  // pages are touched
  RIDGE_ASSIGN_OR_RETURN(const double once_s, TimeBlock(ranks, collective, 2));
  const double wanted = block_s / std::max(once_s, 1e-7);
  const auto repetitions =
      static_cast<int64_t>(std::clamp(std::ceil(wanted), 1.0, double{kMostRepetitions}));
  std::vector<double> blocks_s;
  for (int block = 0; block < kBlocks; ++block) {
    RIDGE_ASSIGN_OR_RETURN(const double s, TimeBlock(ranks, collective, repetitions));
    blocks_s.push_back(s);
  }
  return Median(blocks_s);
}

std::vector<int64_t> Counts(int64_t size) {
  std::vector<int64_t> counts;
  for (int64_t count = 2; count < size; count *= 2) counts.push_back(count);
  counts.push_back(size);
  return counts;
}

}  // namespace

double CollectiveRate::bytes_per_s() const {
  const auto n = static_cast<double>(ranks);
  const double times = collective == kTreeSumRate ? 2 : 1;
  return times * static_cast<double>(bytes) * (n - 1) / n / seconds;
}

Result<std::vector<CollectiveRate>> BenchCollective(Communicator& ranks, Backend& backend,
                                                    int threads, const CollectiveRequest& request) {
  constexpr std::pair<const char*,
                      TimedCollective (*)(const Communicator&, int64_t, int64_t, Buffers&)>
      kCollectives[] = {{"all_to_all", AllToAll}, {"all_gather", AllGather}};
  Buffers buffers(std::max(request.most_bytes, kLeastBytes));
  std::vector<CollectiveRate> rates;
  for (const auto& [name, make] : kCollectives) {
    if (request.sums_alone) break;
    for (const int64_t count : Counts(ranks.size())) {
      for (int64_t bytes = kLeastBytes; bytes <= std::ssize(buffers.out); bytes *= 4) {
        const TimedCollective collective = make(ranks, count, bytes, buffers);
        RIDGE_ASSIGN_OR_RETURN(const double s, Time(ranks, collective, request.block_s));
        rates.push_back({name, count, bytes, s});
      }
    }
  }
  RIDGE_ASSIGN_OR_RETURN(
      const std::vector<SumTime> sums,
      TimeSums(ranks, backend, threads,
               {.most_bytes = std::ssize(buffers.out), .size_s = kBlocks * request.block_s}));
  for (const SumTime& sum : sums)
    rates.push_back({kTreeSumRate, ranks.size(), sum.bytes, sum.seconds});
  for (const SumTime& sum : sums)
    rates.push_back({kBF16SumRate, ranks.size(), sum.bytes, sum.bf16_seconds});
  return rates;
}

}  // namespace ridge
