#include "ridge/plan/bucket_order.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "ridge/plan/uses.h"

namespace ridge {
namespace {

// The bytes that a node reads and writes: persistent values by their index, others by their root.
class Touched {
 public:
  Touched(const StepPlan& step, const StepUses& uses, const PlannedNode& node) {
    for (const int value : node.inputs) {
      if (value >= 0) Add(step, uses, value, reads_);
    }
    for (const int value : node.outputs) Add(step, uses, value, writes_);
    for (const int sum : node.sums) writes_.insert({true, sum});
  }

  // Whether the two nodes must stay in their order.
  bool Meets(const Touched& other) const {
    return Any(writes_, other.writes_) || Any(writes_, other.reads_) || Any(reads_, other.writes_);
  }

 private:
  using Bytes = std::set<std::pair<bool, int>>;  // whether it is persistent, and which

  static void Add(const StepPlan& step, const StepUses& uses, int value, Bytes& bytes) {
    const int root = uses.bytes().RootOf(value);
    for (const int of : {value, root}) {
      const PlannedValue& planned = step.values[static_cast<size_t>(of)];
      if (planned.persistent) bytes.insert({true, planned.persistent_index});
      if (const int sum = FirstWrittenIn(step, of); sum >= 0) bytes.insert({true, sum});
    }
    bytes.insert({false, root});
  }

  static bool Any(const Bytes& a, const Bytes& b) {
    return std::any_of(a.begin(), a.end(), [&](const auto& one) { return b.contains(one); });
  }

  Bytes reads_, writes_;
};

std::vector<Touched> TouchedBy(const StepPlan& step, const StepUses& uses, int first, int end) {
  std::vector<Touched> touched;
  for (int n = first; n < end; ++n)
    touched.emplace_back(step, uses, step.nodes[static_cast<size_t>(n)]);
  return touched;
}

// The nodes of the loop whose results nobody needs but these sums.
std::vector<bool> LeadOnlyTo(const StepPlan& step, const StepUses& uses, const Region& loop,
                             const std::vector<int>& sums) {
  std::vector<bool> only(step.nodes.size(), false);
  const auto is_sum = [&](int value) {
    const PlannedValue& planned = step.values[static_cast<size_t>(value)];
    return planned.persistent &&
           std::find(sums.begin(), sums.end(), planned.persistent_index) != sums.end();
  };
  const auto is_output = [&](int value) {
    return std::any_of(step.outputs.begin(), step.outputs.end(),
                       [&](const auto& output) { return output.second == value; });
  };
  const auto leads = [&](int value) {
    if (is_sum(value)) return true;
    if (step.values[static_cast<size_t>(value)].persistent || is_output(value)) return false;
    // A view of it has readers of its own.
    bool any = false;
    for (const int sharer : uses.bytes().SharersOf(value)) {
      for (const Read& read : uses.ReadsOf(sharer)) {
        if (!only[static_cast<size_t>(read.node)] && uses.ProducerOf(value) < read.node)
          return false;
        any = any || only[static_cast<size_t>(read.node)];
      }
    }
    return any;
  };
  for (int n = loop.end - 1; n >= loop.first; --n) {
    const std::vector<int>& outputs = step.nodes[static_cast<size_t>(n)].outputs;
    only[static_cast<size_t>(n)] =
        !outputs.empty() && std::all_of(outputs.begin(), outputs.end(), leads);
  }
  return only;
}

// order[i]: which node is the i-th of [first, ...) from now on.
void Permute(const std::vector<int>& order, int first, StepPlan& step) {
  std::vector<PlannedNode> nodes;
  std::vector<int> now(step.nodes.size());
  std::iota(now.begin(), now.end(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    nodes.push_back(std::move(step.nodes[static_cast<size_t>(order[i])]));
    now[static_cast<size_t>(order[i])] = first + static_cast<int>(i);
  }
  std::move(nodes.begin(), nodes.end(), step.nodes.begin() + first);
  Region& loop = *MicroBatchLoop(step);
  for (std::vector<int>* kept : {&loop.peeled.skipped, &loop.once}) {
    for (int& n : *kept) n = now[static_cast<size_t>(n)];
    std::sort(kept->begin(), kept->end());
  }
}

}  // namespace

std::vector<int> OutputSums(const StepPlan& step) {
  std::vector<int> sums;
  for (const int sum : step.sums) {
    const bool is_output =
        std::any_of(step.outputs.begin(), step.outputs.end(), [&](const auto& output) {
          const PlannedValue& value = step.values[static_cast<size_t>(output.second)];
          return value.persistent && value.persistent_index == sum;
        });
    if (is_output) sums.push_back(sum);
  }
  return sums;
}

void MoveOutputsUp(StepPlan& step) {
  const Region& loop = *MicroBatchLoop(step);
  if (loop.in_step || !loop.parts.empty()) return;
  const StepUses uses(step);
  const std::vector<bool> only = LeadOnlyTo(step, uses, loop, OutputSums(step));
  const std::vector<Touched> touched = TouchedBy(step, uses, loop.first, loop.end);
  std::vector<int> order;
  for (int n = loop.first; n < loop.end; ++n) {
    size_t at = order.size();
    const Touched& own = touched[static_cast<size_t>(n - loop.first)];
    while (only[static_cast<size_t>(n)] && at > 0 &&
           !own.Meets(touched[static_cast<size_t>(order[at - 1] - loop.first)]))
      --at;
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(at), n);
  }
  Permute(order, loop.first, step);
}

void SortByBucket(const std::map<int, int>& bucket_of, StepPlan& step) {
  const int first = MicroBatchLoop(step)->end;
  for (const Region& part : step.body.parts) {
    if (part.first >= first && (part.kind != Region::Kind::kSequence || !part.parts.empty()))
      return;
  }
  const StepUses uses(step);
  const std::vector<Touched> touched = TouchedBy(step, uses, first, step.body.end);
  std::vector<int> bucket(touched.size(), -1), order(touched.size());
  for (size_t n = 0; n < touched.size(); ++n) {
    for (const int value : step.nodes[static_cast<size_t>(first) + n].inputs) {
      if (const auto known = bucket_of.find(value); known != bucket_of.end())
        bucket[n] = std::max(bucket[n], known->second);
    }
    for (size_t before = 0; before < n; ++before) {
      if (bucket[before] > bucket[n] && touched[n].Meets(touched[before]))
        bucket[n] = bucket[before];
    }
  }
  std::iota(order.begin(), order.end(), first);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return bucket[static_cast<size_t>(a - first)] < bucket[static_cast<size_t>(b - first)];
  });
  Permute(order, first, step);
}

}  // namespace ridge
