#include "ridge/plan/tree_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ridge/plan/uses.h"

namespace ridge {
namespace {

constexpr char kAllReduce[] = "all_reduce", kAllGather[] = "all_gather";

PlannedNode NodeOf(const StepPlan& step, const char* op, const char* kernel) {
  PlannedNode node;
  node.name = op;
  node.op = op;
  node.call.where = fmt::format("{} of {}", op, step.name);
  node.choice.kernel = kernel;
  return node;
}

int64_t BlockBytes(const Program& program, const std::vector<int>& sums) {
  int64_t bytes = 0;
  for (const int sum : sums)
    bytes += program.memory.Aligned(program.persistent[static_cast<size_t>(sum)].size_bytes);
  return bytes;
}

// The persistent value that holds the blocks at the positions above 0.
PersistentValue FurtherBlocks(const StepPlan& step, int64_t bytes) {
  PersistentValue value;
  value.name = step.name + ".tree";
  value.type = {DType::kU8, {bytes}};
  value.purpose = Purpose::kGradients;
  value.kind = ValueKind::kState;
  value.role = ValueRole::kGradient;
  value.size_bytes = bytes;
  value.init = Init::Zeros();
  return value;
}

// One step's.
class TreeNodes {
 public:
  TreeNodes(StepPlan& step, const MemorySpace& memory) : step_(step), memory_(memory) {}

  void Add() {
    for (const int sum : step_.sums) totals_[sum] = TotalOf(sum);
    if (step_.slices > 1 && MicroBatchLoop(step_)->in_step) {
      AddInStep();
    } else if (step_.slices > 1) {
      AddBehindSlice();
    }
    if (alone()) return;
    PlannedNode sum = SumNode();
    for (const int index : step_.sums) sum.outputs.push_back(totals_.at(index));
    AddBehindLoop(std::move(sum));
  }

 private:
  // A new value for the sum over the batch, which takes the place of the variable for its readers.
  int TotalOf(int sum) {
    const StepUses uses(step_);
    int before = -1;
    for (size_t v = 0; v < step_.values.size() && before < 0; ++v) {
      const PlannedValue& value = step_.values[v];
      if (value.persistent_index == sum && value.shares_with < 0 &&
          uses.ProducerOf(static_cast<int>(v)) < 0)
        before = static_cast<int>(v);
    }
    RIDGE_CHECK(before >= 0, "a sum is a variable of the step");
    PlannedValue total = step_.values[static_cast<size_t>(before)];
    total.name += "@batch";
    step_.values.push_back(std::move(total));
    const int at = static_cast<int>(step_.values.size()) - 1;
    const auto replace = [&](int& value) { value = value == before ? at : value; };
    for (PlannedNode& node : step_.nodes)
      std::for_each(node.inputs.begin(), node.inputs.end(), replace);
    for (auto& [name, value] : step_.outputs) replace(value);
    for (PlannedValue& value : step_.values) replace(value.shares_with);
    return at;
  }

  static void SetCost(int64_t added_bytes, int64_t read_bytes, int64_t written_bytes,
                      PlannedNode& node) {
    const TensorType type = {DType::kF32, {added_bytes / BytesPerElement(DType::kF32)}};
    node.call.inputs = node.call.outputs = {type};
    node.cost = {type.elements(), read_bytes, written_bytes};
  }

  bool alone() const { return step_.tree->share.ranks == 1; }

  int64_t BytesOf(const std::vector<int>& sums) const {
    int64_t bytes = 0;
    for (const int sum : sums)
      bytes += memory_.Aligned(step_.values[Index(totals_.at(sum))].size_bytes);
    return bytes;
  }

  // Of a mean slice.
  PlannedNode AddNode(std::vector<int> sums) const {
    PlannedNode node = NodeOf(step_, kTreeAddKernel, kTreeAddKernel);
    const int64_t bytes = BytesOf(sums);
    int64_t added = 0, read = 0, written = 0;  // blocks
    for (const SliceFold& fold : step_.tree->folds) {
      added += fold.additions;
      read += fold.additions == 0 ? 0 : fold.additions + 1;
      written += fold.additions == 0 ? 0 : 1;
    }
    const auto mean_bytes = [&](int64_t blocks) { return blocks * bytes / step_.slices; };
    SetCost(mean_bytes(added), mean_bytes(read), mean_bytes(written), node);
    node.choice.key = fmt::format("{} {} of {} slices, {} bytes", kTreeAddKernel, step_.slices,
                                  step_.tree->share.slices, bytes);
    for (const int sum : sums) {
      if (alone()) node.outputs.push_back(totals_.at(sum));
    }
    node.sums = std::move(sums);
    return node;
  }

  PlannedNode SumNode() const {
    const SliceShare& share = step_.tree->share;
    const int64_t bytes = step_.tree->block_bytes;
    const int64_t received = ReceivedBytes(share, bytes);
    PlannedNode node = NodeOf(step_, kAllReduce, kTreeSumKernel);
    // Every byte that is sent is read and written once more by who receives it.
    const int64_t sent = SentBytes(share, bytes);
    SetCost(received, received + 2 * sent, received + sent, node);
    node.choice.workspace_bytes = memory_.Aligned(received);
    node.choice.key = fmt::format("{} rank {} of {}, {} slices, {} bytes", kTreeSumKernel,
                                  share.rank, share.ranks, share.slices, bytes);
    return node;
  }

  static size_t Index(int i) { return static_cast<size_t>(i); }

  // The sums that a node leaves in their places, or that its copies do.
  std::vector<int> SumsOf(const Region& part) const {
    std::set<int> sums;
    for (int n = part.first; n < part.end; ++n) {
      for (const int value : step_.nodes[Index(n)].outputs) {
        const PlannedValue& made = step_.values[Index(value)];
        if (made.persistent && totals_.contains(made.persistent_index))
          sums.insert(made.persistent_index);
      }
    }
    return {sums.begin(), sums.end()};
  }

  // Behind each part that makes sums: the next slice's have their place.
  void AddInStep() {
    for (size_t p = 0; p < Loop().parts.size(); ++p) {
      std::vector<int> sums = SumsOf(Loop().parts[p]);
      if (sums.empty()) continue;
      const bool last = p + 1 == Loop().parts.size();
      MakeRoom(AddNode(std::move(sums)), Loop().parts[p].end);
      ++Loop().parts[p].end;
      if (last) ++Loop().end;
    }
  }

  void AddBehindSlice() {
    MakeRoom(AddNode(step_.sums), Loop().end);
    if (Loop().parts.empty()) Loop().parts.push_back(Region::Sequence(Loop().first, Loop().end));
    Loop().parts.push_back(Region::Sequence(Loop().end, Loop().end + 1));
    ++Loop().end;
  }

  void AddBehindLoop(PlannedNode node) {
    const int at = Loop().end;
    MakeRoom(std::move(node), at);
    std::vector<Region>& parts = step_.body.parts;
    const auto loop = std::find_if(parts.begin(), parts.end(), [](const Region& part) {
      return part.kind == Region::Kind::kLoop;
    });
    RIDGE_CHECK(loop != parts.end(), "the loop is a part of the step's body");
    parts.insert(loop + 1, Region::Sequence(at, at + 1));
  }

  Region& Loop() { return *MicroBatchLoop(step_); }

  // Moves what is at `at` and behind; the caller adds the node to the regions that end at it.
  void MakeRoom(PlannedNode node, int at) {
    step_.nodes.insert(step_.nodes.begin() + at, std::move(node));
    Shift(step_.body, at);
    step_.body.end = static_cast<int>(step_.nodes.size());
    for (std::vector<int>* nodes : {&Loop().peeled.skipped, &Loop().once}) {
      for (int& n : *nodes) n += n >= at ? 1 : 0;
    }
  }

  static void Shift(Region& region, int at) {
    const bool behind = region.first >= at;
    if (behind || region.end > at) ++region.end;
    if (behind) ++region.first;
    for (Region& part : region.parts) Shift(part, at);
  }

  StepPlan& step_;
  const MemorySpace& memory_;
  std::map<int, int> totals_;  // by sum: the value of the whole batch
};

}  // namespace

bool IsTreeNode(const PlannedNode& node) {
  const std::string& kernel = node.choice.kernel;
  return node.def == nullptr &&
         (kernel == kTreeAddKernel || kernel == kTreeSumKernel || kernel == kAllGatherKernel);
}

bool IsCollective(const StepPlan& step, const PlannedNode& node) {
  return IsTreeNode(node) && node.choice.kernel != kTreeAddKernel && step.tree->share.ranks > 1;
}

PlannedNode AllGatherNode(const StepPlan& step, OpCall call) {
  const SliceShare& share = step.tree->share;
  PlannedNode node = NodeOf(step, kAllGather, kAllGatherKernel);
  node.cost = StreamingCost(call, 0);
  node.choice.input_layouts.assign(call.inputs.size(), kRowMajor);
  node.choice.output_layouts = {kRowMajor};
  node.choice.key = fmt::format("{} rank {} of {}, {} slices, {} bytes", kAllGatherKernel,
                                share.rank, share.ranks, share.slices, call.outputs[0].bytes());
  node.call = std::move(call);
  return node;
}

std::vector<std::vector<int>> SumBlocks(const Program& program) {
  std::vector<std::vector<int>> blocks;
  for (const StepPlan& step : program.steps) {
    if (step.tree && std::find(blocks.begin(), blocks.end(), step.sums) == blocks.end())
      blocks.push_back(step.sums);
  }
  return blocks;
}

void FormTreeSums(Program& program) {
  std::map<std::vector<int>, int> further;  // by sums
  for (StepPlan& step : program.steps) {
    if (!step.tree) continue;
    RIDGE_CHECK(program.memory.alignment_bytes % kChunkLine == 0, "sums begin with a line");
    TreePlan& tree = *step.tree;
    tree.block_bytes = BlockBytes(program, step.sums);
    const int64_t blocks = PositionsOf(tree.folds) - 1;
    if (blocks > 0) {
      const auto [known, added] =
          further.try_emplace(step.sums, static_cast<int>(program.persistent.size()));
      if (added) program.persistent.push_back(FurtherBlocks(step, blocks * tree.block_bytes));
      tree.further = known->second;
    }
    TreeNodes(step, program.memory).Add();
  }
}

int64_t SumOffset(const Program& program, const StepPlan& step, int sum, int64_t position) {
  const auto offset_of = [&](int index) {
    return program.persistent[static_cast<size_t>(index)].offset_bytes;
  };
  if (position == 0) return offset_of(sum);
  return offset_of(step.tree->further) + (position - 1) * step.tree->block_bytes + offset_of(sum) -
         offset_of(step.sums.front());
}

std::optional<SliceShare> ShareOf(const Program& program) {
  for (const StepPlan& step : program.steps) {
    if (step.tree) return step.tree->share;
  }
  return std::nullopt;
}

namespace {

// Of one node.
Collective CollectiveOf(const StepPlan& step, const PlannedNode& node) {
  const SliceShare& share = step.tree->share;
  Collective one = {step.name, node.op, 1, 0, 0, node.choice.workspace_bytes};
  if (node.choice.kernel == kTreeSumKernel) {
    one.bytes = step.tree->block_bytes;
    one.sent_bytes = SentBytes(share, one.bytes);
  } else {
    one.bytes = node.call.outputs[0].bytes();
    one.sent_bytes = one.bytes / share.slices * share.owned().count() * (share.ranks - 1);
  }
  return one;
}

}  // namespace

std::vector<Collective> CollectivesOf(const Program& program) {
  std::vector<Collective> collectives;
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      if (!IsCollective(step, node)) continue;
      const Collective one = CollectiveOf(step, node);
      const auto same = std::find_if(
          collectives.begin(), collectives.end(),
          [&](const Collective& other) { return other.step == one.step && other.op == one.op; });
      if (same == collectives.end()) {
        collectives.push_back(one);
        continue;
      }
      ++same->count;
      same->bytes += one.bytes;
      same->sent_bytes += one.sent_bytes;
      same->scratch_bytes = std::max(same->scratch_bytes, one.scratch_bytes);
    }
  }
  return collectives;
}

}  // namespace ridge
