#include "ridge/plan/tree_sums.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "ridge/plan/bucket_order.h"
#include "ridge/plan/mesh_nodes.h"
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

int64_t SumBytes(const Program& program, const std::vector<int>& sums) {
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

// Adds nodes to a step, and keeps its regions.
class NodeInserter {
 public:
  explicit NodeInserter(StepPlan& step) : step_(step) {}

  Region& loop() { return *MicroBatchLoop(step_); }

  // Becomes node `at`, in `region`: at its start, between its parts or at its end, or within a part
  // that has nodes before and behind.
  void Insert(PlannedNode node, const Region& region, int at) {
    step_.nodes.insert(step_.nodes.begin() + at, std::move(node));
    Grow(step_.body, &region, at);
    for (std::vector<int>* nodes : {&loop().peeled.skipped, &loop().once}) {
      for (int& n : *nodes) n += n >= at ? 1 : 0;
    }
  }

 private:
  // Whether `target` is this region or below it.
  static bool Grow(Region& region, const Region* target, int at) {
    bool holds = &region == target;
    for (Region& part : region.parts) holds = Grow(part, target, at) || holds;
    const bool behind = region.first >= at && !holds;
    if (behind) ++region.first;
    if (behind || holds || region.end > at) ++region.end;
    if (&region == target && !region.parts.empty()) AddPart(region, at);
    return holds;
  }

  static void AddPart(Region& region, int at) {
    const auto next = std::find_if(region.parts.begin(), region.parts.end(),
                                   [&](const Region& part) { return part.end > at; });
    if (next == region.parts.end() || next->first > at)
      region.parts.insert(next, Region::Sequence(at, at + 1));
  }

  StepPlan& step_;
};

// One step's.
class TreeNodes {
 public:
  TreeNodes(const Program& program, StepPlan& step)
      : program_(program),
        step_(step),
        memory_(program.memory),
        inserter_(step),
        outputs_(OutputSums(step).size()) {}

  // The sums in the order in which they are ready, those that are outputs first.
  static std::vector<int> ReadyOrder(const StepPlan& step) {
    const std::map<int, int> ready = ReadyAfter(step);
    const std::vector<int> outputs = OutputSums(step);
    const auto place = [&](int sum) {
      const bool other = std::find(outputs.begin(), outputs.end(), sum) == outputs.end();
      return std::pair(other, ready.at(sum));
    };
    std::vector<int> sums = step.sums;
    std::stable_sort(sums.begin(), sums.end(), [&](int a, int b) { return place(a) < place(b); });
    return sums;
  }

  void Add(bool overlap) {
    for (const int sum : step_.sums) totals_[sum] = TotalOf(sum);
    if (!alone() && Loop().in_step) SplitGathers();
    if (!alone() && overlap) return AddBuckets();
    if (step_.slices > 1 && Loop().in_step) {
      AddInStep();
    } else if (step_.slices > 1) {
      AddSlice(step_.sums, Loop().end);
    }
    if (alone()) return;
    PlannedNode sum = SumNode(kAllReduce, kTreeSumKernel, step_.sums);
    for (const int index : step_.sums) sum.outputs.push_back(totals_.at(index));
    inserter_.Insert(std::move(sum), step_.body, Loop().end);
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

  int64_t BytesOf(const std::vector<int>& sums) const {
    int64_t bytes = 0;
    for (const int sum : sums)
      bytes += memory_.Aligned(step_.values[Index(totals_.at(sum))].size_bytes);
    return bytes;
  }

  bool alone() const { return step_.tree->share.ranks == 1; }
  Region& Loop() { return inserter_.loop(); }

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

  // Of these sums, which lie side by side.
  PlannedNode SumNode(const char* op, const char* kernel, const std::vector<int>& sums) const {
    const SliceShare& share = step_.tree->share;
    const int64_t bytes = BytesOf(sums);
    const WireBlock wire = WireBlockOf(program_, *step_.tree, sums);
    const int64_t received = ReceivedBytes(share, wire);
    PlannedNode node = NodeOf(step_, op, kernel);
    // Every byte that is sent is read and written once more by who receives it, and what is packed
    // once more by both.
    const int64_t sent = SentBytes(share, wire);
    const int64_t packed = wire.goes_as_it_lies() ? 0 : 2 * sent;
    SetCost(received, received + 2 * sent + packed, received + sent + packed, node);
    node.choice.workspace_bytes = memory_.Aligned(SumScratchBytes(share, wire));
    node.choice.key = fmt::format("{} rank {} of {}, {} slices, {} bytes", kernel, share.rank,
                                  share.ranks, share.slices, bytes);
    if (!wire.goes_as_it_lies()) node.choice.key += fmt::format(", {} sent", sent);
    node.sums = sums;
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

  // Behind what a slice adds to the sums.
  void AddSlice(const std::vector<int>& sums, int at) { InsertInLoop(AddNode(sums), at); }

  void InsertInLoop(PlannedNode node, int at) {
    if (Loop().parts.empty()) Loop().parts.push_back(Region::Sequence(Loop().first, Loop().end));
    inserter_.Insert(std::move(node), Loop(), at);
  }

  // Behind each part that makes sums: the next slice's have their place.
  void AddInStep() {
    for (size_t p = 0; p < Loop().parts.size(); ++p) {
      std::vector<int> sums = SumsOf(Loop().parts[p]);
      if (sums.empty()) continue;
      inserter_.Insert(AddNode(std::move(sums)), Loop().parts[p], Loop().parts[p].end);
    }
  }

  // Where nodes stand between a gather and what reads it.
  void SplitGathers() {
    for (int n = Loop().first; n < Loop().end; ++n) {
      if (step_.nodes[Index(n)].choice.kernel != kAllGatherKernel) continue;
      const int reader = ReaderOf(n);
      if (reader > n + 1) SplitGather(n, reader);
    }
  }

  // The first node that reads what node `gather` makes, or the next gather; of the loop.
  int ReaderOf(int gather) const {
    const StepUses uses(step_);
    const int made = uses.bytes().RootOf(step_.nodes[Index(gather)].outputs[0]);
    const auto reads = [&](int value) { return value >= 0 && uses.bytes().RootOf(value) == made; };
    const int end = MicroBatchLoop(step_)->end;
    for (int n = gather + 1; n < end; ++n) {
      const PlannedNode& node = step_.nodes[Index(n)];
      if (IsGather(node) || std::any_of(node.inputs.begin(), node.inputs.end(), reads)) return n;
    }
    return end;
  }

  // The wait has the result in the bytes of the start's.
  void SplitGather(int gather, int reader) {
    PlannedNode wait = step_.nodes[Index(gather)];
    PlannedNode& start = step_.nodes[Index(gather)];
    start.op = start.choice.kernel = kAllGatherStartKernel;
    start.cost = {};  // the wait's
    wait.op = wait.choice.kernel = kAllGatherWaitKernel;
    wait.choice.input_layouts = {kRowMajor};
    wait.choice.in_place = {{0, 0}};
    const int started = start.outputs[0];
    PlannedValue all = step_.values[Index(started)];
    step_.values[Index(started)].name += ".started";
    all.shares_with = started;
    const int at = static_cast<int>(step_.values.size());
    const auto replace = [&](int& value) { value = value == started ? at : value; };
    for (PlannedNode& node : step_.nodes)
      std::for_each(node.inputs.begin(), node.inputs.end(), replace);
    for (PlannedValue& value : step_.values) replace(value.shares_with);
    step_.values.push_back(std::move(all));
    wait.inputs = {started};
    wait.outputs = {at};
    InsertOnce(std::move(wait), reader);
  }

  void InsertOnce(PlannedNode node, int at) {
    InsertInLoop(std::move(node), at);
    std::vector<int>& once = Loop().once;
    once.insert(std::upper_bound(once.begin(), once.end(), at), at);
  }

  // By sum: the first node index at which nothing of the loop touches it any more.  A copy that is
  // left out touches nothing.
  static std::map<int, int> ReadyAfter(const StepPlan& step) {
    const Region& loop = *MicroBatchLoop(step);
    std::map<int, int> ready;
    for (const int sum : step.sums) ready[sum] = loop.first;
    const auto touch = [&](int value, int n) {
      if (value < 0) return;
      const PlannedValue& touched = step.values[Index(value)];
      const int sum = touched.persistent ? touched.persistent_index : FirstWrittenIn(step, value);
      if (const auto known = ready.find(sum); known != ready.end()) known->second = n + 1;
    };
    const std::vector<int>& skipped = loop.peeled.skipped;
    for (int n = loop.first; n < loop.end; ++n) {
      if (std::binary_search(skipped.begin(), skipped.end(), n)) continue;
      for (const int value : step.nodes[Index(n)].inputs) touch(value, n);
      for (const int value : step.nodes[Index(n)].outputs) touch(value, n);
      for (const int sum : step.nodes[Index(n)].sums) ready[sum] = n + 1;
    }
    return ready;
  }

  // The outputs, which are waited for first, are a bucket of their own.
  // REQUIRES: step_.sums are in the order in which they are ready.
  std::vector<std::vector<int>> Buckets() const {
    std::vector<std::vector<int>> buckets;
    int64_t bytes = 0;
    const int64_t enough =
        std::clamp(step_.tree->block_bytes / kMostBuckets, kLeastBucketBytes, kMostBucketBytes);
    for (size_t i = 0; i < step_.sums.size(); ++i) {
      if (bytes == 0 || i == outputs_) buckets.emplace_back();
      if (i == outputs_) bytes = 0;
      buckets.back().push_back(step_.sums[i]);
      bytes += BytesOf({step_.sums[i]});
      if (bytes >= enough) bytes = 0;
    }
    return buckets;
  }

  void AddBuckets() {
    const std::vector<std::vector<int>> buckets = Buckets();
    if (step_.slices > 1 && Loop().in_step) AddInStep();
    for (const std::vector<int>& sums : buckets) {
      const std::map<int, int> ready = ReadyAfter(step_);
      int at = Loop().first;
      for (const int sum : sums) at = std::max(at, ready.at(sum));
      AddStart(sums, BehindPart(Loop(), at));
    }
    std::map<int, int> bucket_of;
    for (size_t b = 0; b < buckets.size(); ++b) {
      for (const int sum : buckets[b]) bucket_of[totals_.at(sum)] = static_cast<int>(b);
    }
    SortByBucket(bucket_of, step_);
    for (const std::vector<int>& sums : buckets) AddWait(sums);
  }

  // No node comes between those that run at the same time, or for one slice after the other.
  static int BehindPart(const Region& region, int at) {
    for (const Region& part : region.parts) {
      if (part.first >= at || part.end < at) continue;
      const bool whole = part.kind == Region::Kind::kParallel || region.in_step;
      return whole ? part.end : BehindPart(part, at);
    }
    return at;
  }

  void AddStart(const std::vector<int>& sums, int at) {
    if (step_.slices > 1 && !Loop().in_step) AddSlice(sums, at++);
    PlannedNode start = SumNode("all_reduce_start", kTreeSumStartKernel, sums);
    start.cost = {};  // the wait's
    PlannedValue scratch;
    scratch.name = fmt::format("bucket {}.received", scratch_.size());
    scratch.type = {DType::kU8, {start.choice.workspace_bytes}};
    scratch.purpose = Purpose::kWorkspace;
    scratch.size_bytes = std::exchange(start.choice.workspace_bytes, 0);
    step_.values.push_back(std::move(scratch));
    scratch_[sums.front()] = static_cast<int>(step_.values.size()) - 1;
    start.outputs = {scratch_.at(sums.front())};
    InsertOnce(std::move(start), at);
  }

  // Before the first node behind the loop that reads one of the sums.
  void AddWait(const std::vector<int>& sums) {
    PlannedNode wait = SumNode("all_reduce_wait", kTreeSumWaitKernel, sums);
    wait.choice.workspace_bytes = 0;
    wait.inputs = {scratch_.at(sums.front())};
    for (const int sum : sums) wait.outputs.push_back(totals_.at(sum));
    const auto reads = [&](const PlannedNode& node) {
      return std::any_of(node.inputs.begin(), node.inputs.end(), [&](int value) {
        return std::find(wait.outputs.begin(), wait.outputs.end(), value) != wait.outputs.end();
      });
    };
    // An output such as the loss comes first: nothing is updated when it is not finite.
    const bool is_output =
        std::any_of(step_.outputs.begin(), step_.outputs.end(), [&](const auto& output) {
          return std::find(wait.outputs.begin(), wait.outputs.end(), output.second) !=
                 wait.outputs.end();
        });
    int at = Loop().end;
    while (!is_output && at < step_.body.end && !reads(step_.nodes[Index(at)])) ++at;
    at = BeforePart(step_.body, at);
    const Region* region = &step_.body;
    for (const Region& part : step_.body.parts) {
      if (part.kind == Region::Kind::kSequence && part.first < at && at < part.end) region = &part;
    }
    inserter_.Insert(std::move(wait), *region, at);
  }

  static int BeforePart(const Region& region, int at) {
    for (const Region& part : region.parts) {
      if (part.first >= at || part.end <= at) continue;
      return part.kind == Region::Kind::kParallel ? part.first : BeforePart(part, at);
    }
    return at;
  }

  static constexpr int64_t kMostBuckets = 16;
  static constexpr int64_t kLeastBucketBytes = int64_t{256} << 10;
  static constexpr int64_t kMostBucketBytes = int64_t{4} << 20;

  const Program& program_;
  StepPlan& step_;
  const MemorySpace& memory_;
  NodeInserter inserter_;
  const size_t outputs_;        // of the sums, those that are outputs
  std::map<int, int> totals_;   // by sum: the value of the whole batch
  std::map<int, int> scratch_;  // by the first sum of a bucket: what it receives
};

}  // namespace

bool IsTreeNode(const PlannedNode& node) {
  static constexpr std::string_view kKernels[] = {kTreeAddKernel, kTreeSumKernel,
                                                  kTreeSumStartKernel, kTreeSumWaitKernel};
  return IsGather(node) ||
         (node.def == nullptr && std::find(std::begin(kKernels), std::end(kKernels),
                                           node.choice.kernel) != std::end(kKernels));
}

bool IsGather(const PlannedNode& node) {
  const std::string& kernel = node.choice.kernel;
  return node.def == nullptr && (kernel == kAllGatherKernel || kernel == kAllGatherStartKernel ||
                                 kernel == kAllGatherWaitKernel);
}

bool IsCollective(const StepPlan& step, const PlannedNode& node) {
  if (IsMeshCollective(node)) return true;
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

void FormTreeSums(Program& program, bool overlap) {
  std::map<std::vector<int>, int> further;                // by sums
  std::map<std::set<int>, std::vector<int>> by_contents;  // steps of equal sums share their block
  for (StepPlan& step : program.steps) {
    if (!step.tree) continue;
    if (overlap) {
      MoveOutputsUp(step);
      const std::set<int> contents(step.sums.begin(), step.sums.end());
      step.sums = by_contents.try_emplace(contents, TreeNodes::ReadyOrder(step)).first->second;
    }
    RIDGE_CHECK(program.memory.alignment_bytes % kChunkLine == 0, "sums begin with a line");
    TreePlan& tree = *step.tree;
    tree.block_bytes = SumBytes(program, step.sums);
    // Beside a step a bucket leaves whole: the next segment would wait for this one's sum.
    if (!overlap && program.memory.host_visible) tree.segment_bytes = kSegmentBytes;
    if (tree.wire != DType::kF32) tree.narrow = NarrowSums(program, step);
    const int64_t blocks = PositionsOf(tree.folds) - 1;
    if (blocks > 0) {
      const auto [known, added] =
          further.try_emplace(step.sums, static_cast<int>(program.persistent.size()));
      if (added) program.persistent.push_back(FurtherBlocks(step, blocks * tree.block_bytes));
      tree.further = known->second;
    }
    TreeNodes(program, step).Add(overlap);
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

std::vector<int> NarrowSums(const Program& program, const StepPlan& step) {
  const std::vector<int> outputs = OutputSums(step);
  std::vector<int> narrow;
  for (const int sum : step.sums) {
    const PersistentValue& value = program.persistent[static_cast<size_t>(sum)];
    const bool output = std::find(outputs.begin(), outputs.end(), sum) != outputs.end();
    if (!output && value.role == ValueRole::kGradient && value.type.dtype == DType::kF32)
      narrow.push_back(sum);
  }
  return narrow;
}

WireBlock WireBlockOf(const Program& program, const TreePlan& tree, const std::vector<int>& sums) {
  WireBlock block;
  block.segment_bytes = tree.segment_bytes;
  for (const int sum : sums) {
    const bool as_bf16 =
        std::find(tree.narrow.begin(), tree.narrow.end(), sum) != tree.narrow.end();
    block.Add(SumBytes(program, {sum}), as_bf16);
  }
  return block;
}

std::optional<SliceShare> ShareOf(const Program& program) {
  for (const StepPlan& step : program.steps) {
    if (step.tree) return step.tree->share;
  }
  return std::nullopt;
}

std::string ExchangeOrder(const Program& program) {
  std::string text;
  for (const StepPlan& step : program.steps) {
    if (step.tree)
      text += fmt::format("{} {}\n", step.name, fmt::join(step.tree->share.Counts(), ","));
    for (const PlannedNode& node : step.nodes) {
      if (!IsCollective(step, node)) continue;
      text += fmt::format("{} {} {}\n", step.name, node.choice.kernel, node.name);
      for (const int sum : node.sums)
        text += program.persistent[static_cast<size_t>(sum)].name + "\n";
      if (IsGather(node)) text += step.values[static_cast<size_t>(node.outputs[0])].name + "\n";
    }
  }
  return text;
}

namespace {

bool Starts(const PlannedNode& node) {
  return node.choice.kernel == kTreeSumStartKernel || node.choice.kernel == kAllGatherStartKernel;
}

// Of one node.
Collective CollectiveOf(const Program& program, const StepPlan& step, const PlannedNode& node) {
  Collective one = {step.name, node.op, 1, 0, 0, node.choice.workspace_bytes};
  if (IsMeshCollective(node)) {
    const std::string& axis = node.call.text("axis");
    one.op = fmt::format("{} over {}", node.op, axis);
    one.bytes = CollectiveBytes(node);
    one.sent_bytes =
        SentBytes(*node.def, node.call, program.place->coordinate(program.place->mesh.Find(axis)));
    return one;
  }
  const SliceShare& share = step.tree->share;
  if (!IsGather(node)) {
    one.op = kAllReduce;
    const WireBlock wire = WireBlockOf(program, *step.tree, node.sums);
    one.bytes = wire.bytes;
    one.sent_bytes = SentBytes(share, wire);
  } else {
    one.op = kAllGather;
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
      // A start is counted with its wait.
      if (!IsCollective(step, node) || Starts(node)) continue;
      const Collective one = CollectiveOf(program, step, node);
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
