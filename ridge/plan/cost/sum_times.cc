#include "ridge/plan/cost/sum_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ridge/plan/cost/times.h"
#include "ridge/plan/tree_sums.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

int64_t MostSent(SliceShare share, int64_t block_bytes) {
  int64_t most = 0;
  for (share.rank = 0; share.rank < share.ranks; ++share.rank)
    most = std::max(most, SentBytes(share, block_bytes));
  return most;
}

Status Unusable(const std::string& file, const std::string& why) {
  return Status(ErrorCode::kInvalidData,
                fmt::format("{}: {}. hint: ridge bench collective", file, why));
}

bool IsTable(const std::vector<SumTime>& sums) {
  int64_t before = 0;
  for (const SumTime& sum : sums) {
    if (sum.bytes <= before || !(sum.seconds > 0)) return false;
    before = sum.bytes;
  }
  return !sums.empty();
}

}  // namespace

double SumTimes::Seconds(int64_t bytes) const {
  RIDGE_CHECK(known(), "sums were measured");
  if (bytes <= sums.front().bytes || sums.size() == 1) return sums.front().seconds;
  const auto above = std::find_if(sums.begin() + 1, sums.end() - 1,
                                  [&](const SumTime& sum) { return bytes <= sum.bytes; });
  const SumTime &low = above[-1], &high = *above;
  const double share =
      static_cast<double>(bytes - low.bytes) / static_cast<double>(high.bytes - low.bytes);
  return low.seconds + share * (high.seconds - low.seconds);
}

double SumTimes::Seconds(const SliceShare& share, int64_t block_bytes) const {
  const SliceShare even = {share.ranks, 0, share.ranks};
  const auto of_one = static_cast<double>(MostSent(even, block_bytes));
  if (of_one <= 0) return Seconds(block_bytes);
  const double factor = static_cast<double>(MostSent(share, block_bytes)) / of_one;
  return Seconds(static_cast<int64_t>(factor * static_cast<double>(block_bytes)));
}

std::string SumTimesToJson(const SumTimes& times) {
  Json sums = Json::array();
  for (const SumTime& sum : times.sums) sums.push_back({{"bytes", sum.bytes}, {"s", sum.seconds}});
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
    for (const Json& sum : json.at("sums")) times.sums.push_back({sum.at("bytes"), sum.at("s")});
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
    if (IsTreeNode(node) && node.choice.kernel == kTreeSumKernel) seconds += node_s[n];
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

void PriceSums(const SumTimes& times, Program& program) {
  if (!times.known()) return;
  SetSumSeconds(program, [&](const StepPlan& step) {
    return times.Seconds(step.tree->share, step.tree->block_bytes);
  });
}

}  // namespace ridge
