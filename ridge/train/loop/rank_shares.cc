#include "ridge/train/loop/rank_shares.h"

#include <algorithm>

namespace ridge {
namespace {

constexpr double kForget = 0.02;  // a step is gone after about 50

}  // namespace

RankShares::RankShares(int ranks) : recent_s_(static_cast<size_t>(ranks)) {}

void RankShares::Add(const std::vector<uint64_t>& collective_ns, double step_s) {
  if (recent_s_.size() < 2) return;
  for (size_t rank = 0; rank < recent_s_.size(); ++rank)
    recent_s_[rank] += 1e-9 * static_cast<double>(collective_ns[rank]) - kForget * recent_s_[rank];
  recent_step_s_ += step_s - kForget * recent_step_s_;
  communication_s_.Add(
      1e-9 * static_cast<double>(*std::min_element(collective_ns.begin(), collective_ns.end())));
}

std::optional<double> RankShares::communication() const {
  if (recent_step_s_ <= 0) return std::nullopt;
  return recent_s_[static_cast<size_t>(slowest())] / recent_step_s_;
}

int RankShares::slowest() const {
  return static_cast<int>(std::min_element(recent_s_.begin(), recent_s_.end()) - recent_s_.begin());
}

}  // namespace ridge
