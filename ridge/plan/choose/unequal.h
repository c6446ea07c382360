// Unequal devices that share a batch: how many slices of it each should take.
//
// An update is cut into equal slices, as `ridge train --shares` deals them: a device computes its
// slices one after the other, and waits for the slowest before the sums of gradients.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/plan/choose/layout_cost.h"

namespace ridge {

struct UnequalMember {
  std::string device;
  int64_t limit_bytes = 0;
  // Its part of an update of all members: so many slices, of so many samples each.
  std::function<Result<LayoutCost>(int64_t slices, int64_t samples)> cost;
};

struct UnequalDeal {
  int64_t samples = 1;         // of a slice
  std::vector<int64_t> dealt;  // slices of each member, at least one
  std::vector<LayoutCost> costs;
  double step_s = 0;

  int64_t slices() const;
  int64_t batch() const { return slices() * samples; }
  // That a member waits for the slowest one.
  double IdleSeconds(size_t member) const { return step_s - costs[member].seconds.all(); }
};

// The fastest deal over all numbers of slices that divide the batch, from one a member to 64.
// Fails as `cost` does, with kOutOfMemory where no slice fits all members, and with
// kInvalidArgument where the batch has no slice for each.
Result<UnequalDeal> DealUnequal(const std::vector<UnequalMember>& members, int64_t batch);

// The fastest of those in which all members have as many slices; where the batch allows none, the
// one of most slices in which some have one more.  Fails as DealUnequal.
Result<UnequalDeal> DealEqual(const std::vector<UnequalMember>& members, int64_t batch);

}  // namespace ridge
