#include "ridge/plan/tree_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ridge/plan/uses.h"

namespace ridge {
namespace {

constexpr char kAllReduce[] = "all_reduce";

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
  TreeNodes(StepPlan& step, const MemorySpace& memory)
      : step_(step), memory_(memory), loop_end_(MicroBatchLoop(step)->end) {}

  void Add() {
    for (const int sum : step_.sums) totals_.push_back(TotalOf(sum));
    const bool alone = step_.tree->share.ranks == 1;
    if (step_.slices > 1) {
      Insert(AddNode(), /*in_loop=*/true);
      if (alone) step_.nodes[static_cast<size_t>(loop_end_ - 1)].outputs = totals_;
    }
    if (alone) return;
    Insert(SumNode(), /*in_loop=*/false);
    step_.nodes[static_cast<size_t>(loop_end_)].outputs = totals_;
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

  PlannedNode Node(const char* op, const char* kernel) const {
    PlannedNode node;
    node.name = op;
    node.op = op;
    node.call.where = fmt::format("{} of {}", op, step_.name);
    node.choice.kernel = kernel;
    return node;
  }

  static void SetCost(int64_t added_bytes, int64_t read_bytes, int64_t written_bytes,
                      PlannedNode& node) {
    const TensorType type = {DType::kF32, {added_bytes / BytesPerElement(DType::kF32)}};
    node.call.inputs = node.call.outputs = {type};
    node.cost = {type.elements(), read_bytes, written_bytes};
  }

  // Of a mean slice.
  PlannedNode AddNode() const {
    PlannedNode node = Node(kTreeAddKernel, kTreeAddKernel);
    int64_t added = 0, read = 0, written = 0;  // blocks
    for (const SliceFold& fold : step_.tree->folds) {
      added += fold.additions;
      read += fold.additions == 0 ? 0 : fold.additions + 1;
      written += fold.additions == 0 ? 0 : 1;
    }
    const auto mean_bytes = [&](int64_t blocks) {
      return blocks * step_.tree->block_bytes / step_.slices;
    };
    SetCost(mean_bytes(added), mean_bytes(read), mean_bytes(written), node);
    node.choice.key = fmt::format("{} {} of {} slices, {} bytes", kTreeAddKernel, step_.slices,
                                  step_.tree->share.slices, step_.tree->block_bytes);
    return node;
  }

  PlannedNode SumNode() const {
    const SliceShare& share = step_.tree->share;
    const int64_t bytes = step_.tree->block_bytes;
    const int64_t received = ReceivedBytes(share, bytes);
    PlannedNode node = Node(kAllReduce, kTreeSumKernel);
    // Every byte that is sent is read and written once more by who receives it.
    const int64_t sent = SentBytes(share, bytes);
    SetCost(received, received + 2 * sent, received + sent, node);
    node.choice.workspace_bytes = memory_.Aligned(received);
    node.choice.key = fmt::format("{} rank {} of {}, {} slices, {} bytes", kTreeSumKernel,
                                  share.rank, share.ranks, share.slices, bytes);
    return node;
  }

  // Behind the loop's last node; every region behind it moves by one.
  void Insert(PlannedNode node, bool in_loop) {
    step_.nodes.insert(step_.nodes.begin() + loop_end_, std::move(node));
    std::vector<Region>& parts = step_.body.parts;
    const auto loop = std::find_if(parts.begin(), parts.end(), [](const Region& part) {
      return part.kind == Region::Kind::kLoop;
    });
    RIDGE_CHECK(loop != parts.end(), "the loop is a part of the step's body");
    ++step_.body.end;
    for (auto behind = loop + 1; behind != parts.end(); ++behind) Shift(*behind);
    const Region inserted = Region::Sequence(loop_end_, loop_end_ + 1);
    if (!in_loop) {
      parts.insert(loop + 1, inserted);
      return;
    }
    if (loop->parts.empty()) loop->parts.push_back(Region::Sequence(loop->first, loop_end_));
    loop->parts.push_back(inserted);
    loop->end = ++loop_end_;
  }

  static void Shift(Region& region) {
    ++region.first;
    ++region.end;
    for (Region& part : region.parts) Shift(part);
  }

  StepPlan& step_;
  const MemorySpace& memory_;
  int loop_end_;
  std::vector<int> totals_;
};

}  // namespace

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

std::vector<Collective> CollectivesOf(const Program& program) {
  std::vector<Collective> collectives;
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      if (!IsTreeNode(node) || node.choice.kernel != kTreeSumKernel) continue;
      const TreePlan& tree = *step.tree;
      collectives.push_back({step.name, node.op, tree.block_bytes,
                             SentBytes(tree.share, tree.block_bytes), node.choice.workspace_bytes});
    }
  }
  return collectives;
}

}  // namespace ridge
