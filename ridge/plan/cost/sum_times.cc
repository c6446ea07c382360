#include "ridge/plan/cost/sum_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "ridge/plan/cost/times.h"
#include "ridge/plan/mesh_nodes.h"
#include "ridge/plan/tree_sums.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

int64_t MostSent(SliceShare share, int64_t block_bytes) {
  int64_t most = 0;
  for (share.rank = 0; share.rank < share.ranks; ++share.rank)
    most = std::max(most, SentBytes(share, {block_bytes}));
  return most;
}

Status Unusable(const std::string& file, const std::string& why) {
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: {}. hint: ridge bench collective", file, why));
}

bool IsTable(const std::vector<SumTime>& sums) {
  int64_t before = 0;
  for (const SumTime& sum : sums) {
    if (sum.bytes <= before || !(sum.seconds > 0) || !(sum.bf16_seconds > 0)) return false;
    before = sum.bytes;
  }
  return !sums.empty();
}

}  // namespace

double SumTimes::Seconds(int64_t bytes, bool bf16) const {
  RIDGE_CHECK(known(), "sums were measured");
  const auto seconds = [&](const SumTime& sum) { return bf16 ? sum.bf16_seconds : sum.seconds; };
  if (bytes <= sums.front().bytes || sums.size() == 1) return seconds(sums.front());
  const auto above = std::find_if(sums.begin() + 1, sums.end() - 1,
                                  [&](const SumTime& sum) { return bytes <= sum.bytes; });
  const SumTime &low = above[-1], &high = *above;
  const double share =
      static_cast<double>(bytes - low.bytes) / static_cast<double>(high.bytes - low.bytes);
  return seconds(low) + share * (seconds(high) - seconds(low));
}

double SumTimes::Seconds(const SliceShare& share, const WireBlock& block) const {
  const bool bf16 = !block.goes_as_it_lies();
  const SliceShare even = {share.ranks, 0, share.ranks};
  const auto of_one = static_cast<double>(MostSent(even, block.bytes));
  if (of_one <= 0) return Seconds(block.bytes, bf16);
  const double factor = static_cast<double>(MostSent(share, block.bytes)) / of_one;
  return Seconds(static_cast<int64_t>(factor * static_cast<double>(block.bytes)), bf16);
}

std::string SumTimesToJson(const SumTimes& times) {
  Json sums = Json::array();
  for (const SumTime& sum : times.sums)
    sums.push_back({{"bytes", sum.bytes}, {"s", sum.seconds}, {"bf16_s", sum.bf16_seconds}});
  const Json json = {{"device", times.device},
                     {"mpi", times.mpi},
                     {"ranks", times.ranks},
                     {"machines", times.machines},
                     {"join_bytes", times.join_bytes},
                     {"made_at", times.made_at},
                     {"sums", sums}};
  return json.dump(1) + "\n";
}

Result<SumTimes> SumTimesFromJson(const std::string& text, const std::string& file) {
  try {
    const Json json = Json::parse(text);
    SumTimes times;
    times.device = json.at("device");
    times.mpi = json.at("mpi");
    times.ranks = json.at("ranks");
    times.machines = json.at("machines");
    times.join_bytes = json.at("join_bytes");
    times.made_at = json.at("made_at");
    for (const Json& sum : json.at("sums"))
      times.sums.push_back({sum.at("bytes"), sum.at("s"), sum.at("bf16_s")});
    if (!IsTable(times.sums)) return Unusable(file, "its sums are no table by bytes");
    return times;
  } catch (const Json::exception& error) {
    return Unusable(file, fmt::format("holds no times of sums ({})", error.what()));
  }
}

double SumSeconds(const StepPlan& step) {
  const std::vector<double> node_s = PlannedNodeSeconds(step);
  double seconds = 0;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const PlannedNode& node = step.nodes[n];
    if (IsCollective(step, node)) seconds += node_s[n];
  }
  return seconds;
}

void SetSumSeconds(Program& program, const std::function<double(const StepPlan&)>& seconds_of) {
  for (StepPlan& step : program.steps) {
    for (PlannedNode& node : step.nodes) {
      if (!IsTreeNode(node) || node.choice.kernel != kTreeSumKernel) continue;
      node.modelled_s = seconds_of(step);
      node.correction = 1;
    }
  }
}

namespace {

void SetSeconds(double seconds, PlannedNode& node) {
  node.modelled_s = seconds;
  node.correction = 1;
}

bool Runs(const PlannedNode& node, const char* kernel) {
  return IsTreeNode(node) && node.choice.kernel == kernel;
}

// Buckets leave in order, while others are computed: a wait takes what is left of its bucket, or of
// its gather.  A gather passes those that left before it, behind the pieces that are on their way;
// they are later by its bytes.
class ExchangeQueue {
 public:
  // REQUIRES: the step has several ranks, and a price for each gather or its wait.
  ExchangeQueue(const SumTimes& times, const Program& program, StepPlan& step)
      : times_(times), program_(program), step_(step), loop_(*MicroBatchLoop(step)) {
    for (PlannedNode& node : step.nodes) {
      if (Runs(node, kTreeSumStartKernel) || Runs(node, kTreeSumWaitKernel)) SetSeconds(0, node);
    }
    node_s_ = PlannedNodeSeconds(step);
    for (int n = loop_.first; n < loop_.end; ++n)
      earlier_s_ += node_s_[static_cast<size_t>(n)] * static_cast<double>(RunsOf(n) - 1);
    earlier_s_ = std::max(0.0, earlier_s_);
  }

  void Price() {
    // Where slices run one by one, a start comes behind all others of them.
    double now_s = loop_.in_step ? 0 : earlier_s_;
    for (size_t n = 0; n < step_.nodes.size(); ++n) {
      PlannedNode& node = step_.nodes[n];
      if (Runs(node, kTreeSumStartKernel)) {
        free_s_ = std::max(free_s_, now_s) + SecondsOf(node);
        done_s_[node.sums.front()] = free_s_;
      } else if (Runs(node, kTreeSumWaitKernel)) {
        SetSeconds(std::max(0.0, done_s_.at(node.sums.front()) - now_s), node);
        now_s += node.modelled_s;
      } else if (IsGather(node)) {
        PriceGather(now_s, node, node_s_[n]);
      }
      const bool all = loop_.in_step && loop_.Holds(static_cast<int>(n));
      now_s += node_s_[n] * static_cast<double>(all ? RunsOf(static_cast<int>(n)) : 1);
    }
  }

 private:
  // `node_s`: as if it were alone; from then on, what it takes.
  void PriceGather(double now_s, PlannedNode& node, double& node_s) {
    if (Runs(node, kAllGatherWaitKernel)) {
      node_s = std::max(0.0, gathered_s_ - now_s);
    } else {
      const double gather_s = node_s + AheadSeconds(now_s);
      gathered_s_ = now_s + gather_s;
      Delay(now_s, LinkSeconds(GatheredBytes(node)));
      node_s = Runs(node, kAllGatherStartKernel) ? 0 : gather_s;
    }
    SetSeconds(node_s, node);
  }

  int64_t RunsOf(int n) const { return ridge::RunsOf(step_, static_cast<size_t>(n)); }

  // As long as a rank sends so many bytes, at the rate of the largest sums.
  double LinkSeconds(int64_t bytes) const {
    const int ranks = step_.tree->share.ranks;
    const SumTime& most = times_.sums.back();
    const auto sent = static_cast<double>(MostSent({ranks, 0, ranks}, most.bytes));
    return most.seconds * static_cast<double>(bytes) / std::max(1.0, sent);
  }

  // Of the pieces that are on their way: one to each rank, if these are more.
  double AheadSeconds(double now_s) const {
    const int64_t pieces = std::max<int64_t>(kPiecesAhead, step_.tree->share.ranks - 1);
    return std::clamp(free_s_ - now_s, 0.0, LinkSeconds(pieces * kPieceBytes));
  }

  // That the busiest rank sends to all others.
  int64_t GatheredBytes(const PlannedNode& node) const {
    const SliceShare& share = step_.tree->share;
    int64_t most = 0;
    for (int rank = 0; rank < share.ranks; ++rank)
      most = std::max(most, share.OwnedBy(rank).count());
    return node.call.outputs[0].bytes() / share.slices * most * (share.ranks - 1);
  }

  // What is under way ends so much later.
  void Delay(double now_s, double seconds) {
    if (free_s_ > now_s) free_s_ += seconds;
    for (auto& [sum, done_s] : done_s_) done_s += done_s > now_s ? seconds : 0;
  }

  double SecondsOf(const PlannedNode& start) const {
    return times_.Seconds(step_.tree->share, WireBlockOf(program_, *step_.tree, start.sums));
  }

  const SumTimes& times_;
  const Program& program_;
  StepPlan& step_;
  const Region& loop_;
  std::vector<double> node_s_;
  double earlier_s_ = 0;          // of all slices but the last one
  double free_s_ = 0;             // when the thread that exchanges is
  double gathered_s_ = 0;         // when the last gather is there
  std::map<int, double> done_s_;  // by the first sum of a bucket
};

// As long as a sum over all ranks in which each sends as much; half of one where there is one
// exchange and not two.
double MeshSeconds(const SumTimes& times, const PlannedNode& node) {
  const auto ranks = static_cast<double>(std::max<int64_t>(2, times.ranks));
  const auto sent = static_cast<double>(SentBytes(*node.def, node.call, /*coordinate=*/0));
  const double exchanges = node.def == &AllReduceOp() ? 2 : 1;
  const double bytes = sent / exchanges * ranks / (ranks - 1);
  return times.Seconds(static_cast<int64_t>(bytes)) * exchanges / 2;
}

void PriceMesh(const SumTimes& times, StepPlan& step) {
  for (PlannedNode& node : step.nodes) {
    if (IsMeshCollective(node)) SetSeconds(MeshSeconds(times, node), node);
  }
}

}  // namespace

void PriceSums(const SumTimes& times, Program& program) {
  if (!times.known()) return;
  for (StepPlan& step : program.steps) PriceMesh(times, step);
  SetSumSeconds(program, [&](const StepPlan& step) {
    return times.Seconds(step.tree->share, WireBlockOf(program, *step.tree, step.sums));
  });
  for (StepPlan& step : program.steps) {
    if (!step.tree || step.tree->share.ranks == 1) continue;
    // It is the second of a sum's two exchanges.
    for (PlannedNode& node : step.nodes) {
      if (IsGather(node)) SetSeconds(times.Seconds(node.call.outputs[0].bytes()) / 2, node);
    }
    const bool beside = std::any_of(step.nodes.begin(), step.nodes.end(), [](const auto& node) {
      return Runs(node, kTreeSumStartKernel) || Runs(node, kAllGatherStartKernel);
    });
    if (beside) ExchangeQueue(times, program, step).Price();
  }
}

}  // namespace ridge
