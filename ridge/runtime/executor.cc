// Where we come from: plan/planner.cc decided order, kernels and offsets.
// What is known here: addresses; every pointer of every node is computed once, for both input
// slots and each slice of a step.  Where it goes next: backend/*/kernels turn buffers into numbers.
#include "ridge/runtime/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <exception>
#include <numeric>
#include <span>
#include <utility>

#include "ridge/core/process.h"
#include "ridge/plan/cost/times.h"
#include "ridge/plan/input_slots.h"
#include "ridge/plan/mesh_nodes.h"
#include "ridge/runtime/lane_recorder.h"
#include "ridge/runtime/mesh_kernels.h"
#include "ridge/runtime/staged_ranks.h"
#include "ridge/runtime/step_kernels.h"
#include "ridge/runtime/tree_nodes.h"

namespace ridge {
namespace {

bool IsSum(const StepPlan& step, int value) {
  const PlannedValue& planned = step.values[static_cast<size_t>(value)];
  return planned.persistent &&
         std::find(step.sums.begin(), step.sums.end(), planned.persistent_index) != step.sums.end();
}

// Nodes behind the loop run with its last slice, and so do those that run once.
int64_t FirstSliceOf(const StepPlan& step, const NodePlace& node) {
  if (!node.in_loop || node.once) return step.slices - 1;
  if (node.trips == 0) return step.slices;
  return node.skips_first ? 1 : 0;
}

}  // namespace

// The coordinates of one execution of a node: the input slot and the slice of it.
struct Executor::Coord {
  int slot = 0;
  int64_t slice = 0;
  int64_t position = 0;  // of a tree: where its sums lie (SliceFold)
  int64_t micro = 0;     // micro batch
};

struct Executor::Operands {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
};

struct Executor::CompiledNode {
  std::unique_ptr<Kernel> kernel;
  bool by_host = false;  // it exchanges, or the host runs it: it is in no recording
  // By slice; all later slices use the last entry.  Where micro batches have copies, by those.
  std::array<std::vector<Operands>, kInputSlots> operands;
  int64_t copies = 1;  // common multiple of its operands'
  void* workspace = nullptr;
  std::vector<size_t> input_bytes, output_bytes;
  size_t workspace_bytes = 0;
  bool within_operands = false;  // it reads and writes nothing else
  int64_t first_slice = 0;

  Operands& At(Coord coord) {
    std::vector<Operands>& by_slice = operands[static_cast<size_t>(coord.slot)];
    if (copies > 1) return by_slice[static_cast<size_t>(coord.micro % copies)];
    return by_slice[std::min(static_cast<size_t>(coord.slice), by_slice.size() - 1)];
  }
};

// A region of the step's body with what a run of it needs.
struct Executor::CompiledRegion {
  explicit CompiledRegion(const Region& region)
      : kind(region.kind),
        first(static_cast<size_t>(region.first)),
        end(static_cast<size_t>(region.end)),
        trips(region.trips),
        in_step(region.in_step),
        parts(region.parts.begin(), region.parts.end()) {}

  Region::Kind kind;
  size_t first, end;  // nodes
  int64_t trips;
  bool in_step;
  std::vector<CompiledRegion> parts;
  std::unique_ptr<Event> begins, ends;  // while timing
  Status status;                        // of a stream
  std::exception_ptr thrown;
};

// What a run of a step enqueues, kept: a part up to each check of the loss and each node that the
// host runs, and one behind.
struct Executor::Recorded {
  // What the host does between two parts: runs a node, or checks the loss.
  struct Between {
    CompiledNode* node = nullptr;
    Coord coord;
  };
  std::vector<std::unique_ptr<Recording>> parts;  // nullptr: it has no work
  std::vector<Between> between;
  // While it is made.
  LaneRecorder lanes;
  bool is_empty = true;  // the part that is recorded
};

struct Executor::CompiledStep {
  explicit CompiledStep(const StepPlan& step)
      : body(step.body), slices(step.slices), seconds(step.nodes.size(), 0) {}

  std::vector<CompiledNode> nodes;
  CompiledRegion body;
  int64_t slices;
  std::vector<std::span<std::byte>> sums;  // to be 0 before the first slice; of the host:
  std::vector<std::span<std::byte>> host_sums;
  std::vector<std::unique_ptr<Event>> ends;  // by node; while timing
  std::unique_ptr<Event> begins;             // while timing
  std::vector<double> seconds;
  bool has_one_address = true;  // each operand, in all runs of a slot
  bool has_run = false;         // plainly: libraries have loaded what they need
  int loss_node = -1;           // makes the output "loss"
  const void* loss = nullptr;
  TensorType loss_type;
  std::vector<double> planned_s;  // by node, with virtual compute: what one run of it lasts
  std::array<Recorded, kInputSlots> recorded;  // by input slot
};

namespace {

size_t MostNodes(const Program& program) {
  size_t nodes = 0;
  for (const StepPlan& step : program.steps) nodes = std::max(nodes, step.nodes.size());
  return nodes;
}

}  // namespace

Executor::Executor(Program program, Backend& backend, std::unique_ptr<Memory> arena,
                   Communicator* communicator, VirtualCompute* compute)
    : program_(std::move(program)),
      backend_(backend),
      device_(backend.device()),
      arena_(std::move(arena)),
      communicator_(communicator),
      compute_(compute) {}

// What is still enqueued after an error uses the arena.
Executor::~Executor() {
  for (int i = 0; i < device_.streams(); ++i) (void)device_.stream(i).Synchronize();
}

Result<std::unique_ptr<Executor>> Executor::Create(Program program, Backend& backend,
                                                   Communicator* communicator,
                                                   VirtualCompute* compute) {
  Device& device = backend.device();
  RIDGE_ASSIGN_OR_RETURN(
      std::unique_ptr<Memory> arena,
      program.host_bytes == 0
          ? device.Allocate(program.arena_bytes)
          : device.AllocateWithHost(program.arena_bytes,
                                    {program.host_bytes, HasNodesOnHost(program)}));
  std::unique_ptr<Executor> executor(
      new Executor(std::move(program), backend, std::move(arena), communicator, compute));
  executor->used_with_arena_ = device.used_bytes();
  RIDGE_RETURN_IF_ERROR(executor->Compile());
  RIDGE_ASSIGN_OR_RETURN(executor->transfers_,
                         Transfers::Create(executor->program_, backend, *executor->arena_));
  return executor;
}

// Those that exchange what lies in the arena.
Status Executor::FindRanksOfArena() {
  in_arena_ = communicator_;
  if (communicator_ == nullptr || arena_->host_visible()) return Status();
  in_arena_ = communicator_->of_device_memory();
  if (in_arena_ != nullptr) return Status();
  const int64_t bytes = StagedExchangeBytes(program_);
  if (bytes == 0) return Status();
  RIDGE_ASSIGN_OR_RETURN(staged_, StageRanks(*communicator_, device_, bytes));
  staged_exchange_bytes_ = bytes;
  in_arena_ = staged_.get();
  return Status();
}

Status Executor::Compile() {
  threads_ = backend_.threads();
  PrepareKernels(program_, backend_);
  RIDGE_RETURN_IF_ERROR(FindRanksOfArena());
  if (communicator_ != nullptr && OverlapsExchange(program_))
    exchange_ = std::make_unique<TreeExchange>(*communicator_, MostNodes(program_) + 1);
  for (const StepPlan& step : program_.steps) {
    auto compiled = std::make_unique<CompiledStep>(step);
    ListSums(step, *compiled);
    const std::vector<NodePlace> places = NodePlaces(step);
    for (size_t n = 0; n < step.nodes.size(); ++n) {
      RIDGE_ASSIGN_OR_RETURN(CompiledNode ready,
                             CompileNode(step, step.nodes[n], places[n].in_loop));
      ready.first_slice = FirstSliceOf(step, places[n]);
      compiled->has_one_address &= ready.copies == 1;
      compiled->nodes.push_back(std::move(ready));
    }
    if (compute_ == nullptr) {
      WatchLoss(step, *compiled);
    } else {
      MakeVirtual(step, *compiled);
    }
    compiled_.push_back(std::move(compiled));
  }
  for (int i = 0; i < device_.streams(); ++i) joins_.push_back(device_.MakeEvent());
  return Status();
}

// The sums that the first slice adds to instead of overwriting.
void Executor::ListSums(const StepPlan& step, CompiledStep& compiled) const {
  if (step.tree) return;
  const Region* loop = MicroBatchLoop(step);
  const PeeledIteration peeled = loop == nullptr ? PeeledIteration() : loop->peeled;
  for (int sum : step.sums) {
    const bool written = std::any_of(peeled.written_in.begin(), peeled.written_in.end(),
                                     [&](const auto& value) { return value.second == sum; });
    if (written) continue;
    const PersistentValue& value = program_.persistent[static_cast<size_t>(sum)];
    const bool followed = value.on_host && HasNodesOnHost(program_);
    (followed ? compiled.host_sums : compiled.sums)
        .emplace_back(arena_->data() + value.offset_bytes, static_cast<size_t>(value.size_bytes));
  }
}

// Between steps: nothing runs that uses them.
void Executor::ClearHostSums(const CompiledStep& compiled) {
  for (const std::span<std::byte> sum : compiled.host_sums) std::memset(sum.data(), 0, sum.size());
}
void Executor::ClearSums(const CompiledStep& compiled) {
  for (const std::span<std::byte> sum : compiled.sums)
    device_.stream(0).Clear(sum.data(), static_cast<int64_t>(sum.size()));
}

// The sum that the value is written into in this slice, or that it is; -1: none.
int Executor::SumOf(const StepPlan& step, int value, int64_t slice) const {
  if (IsPeeled(step, slice)) {
    if (const int sum = FirstWrittenIn(step, value); sum >= 0) return sum;
  }
  return step.tree && IsSum(step, value) ? step.values[static_cast<size_t>(value)].persistent_index
                                         : -1;
}

std::byte* Executor::Address(const StepPlan& step, int value, Coord coord) const {
  if (value < 0) return nullptr;
  const PlannedValue& planned = step.values[static_cast<size_t>(value)];
  const std::vector<PersistentValue>& persistent = program_.persistent;
  if (const int sum = SumOf(step, value, coord.slice); sum >= 0)
    return arena_->data() + SumOffset(program_, step, sum, coord.position);
  std::byte* base = arena_->data() + coord.slice * planned.slice_bytes;
  if (!planned.persistent) return base + planned.offset_bytes;
  const auto index = static_cast<size_t>(planned.persistent_index);
  const PersistentValue& variable = persistent[index];
  if (variable.copies > 1) base += coord.micro % variable.copies * variable.copy_bytes();
  const size_t in_slot = InSlot(persistent, index, coord.slot);
  return base + (in_slot == index ? planned.offset_bytes : persistent[in_slot].offset_bytes);
}

namespace {

// After so many micro batches the operands are the same again.
int64_t CopiesOf(const Program& program, const StepPlan& step, const PlannedNode& node) {
  int64_t copies = 1;
  const auto count = [&](int value) {
    if (value < 0) return;
    const PlannedValue& planned = step.values[static_cast<size_t>(value)];
    if (!planned.persistent) return;
    copies =
        std::lcm(copies, program.persistent[static_cast<size_t>(planned.persistent_index)].copies);
  };
  for (int value : node.inputs) count(value);
  for (int value : node.outputs) count(value);
  RIDGE_CHECK(copies == 1 || step.slices == 1, "a micro batch of a pipeline runs in one slice");
  return copies;
}

// Number of slices with distinct operands: all if an input is sliced or the sums are a tree's, two
// if only the first one differs, else one.
int64_t DistinctSlices(const StepPlan& step, const PlannedNode& node) {
  int64_t slices = 1;
  const auto count = [&](int value) {
    if (value < 0) return;
    const PlannedValue& planned = step.values[static_cast<size_t>(value)];
    if (planned.slice_bytes > 0) slices = step.slices;
    const bool peeled = FirstWrittenIn(step, value) >= 0;
    if (step.tree && (peeled || IsSum(step, value))) slices = step.slices;
    if (peeled) slices = std::max<int64_t>(slices, 2);
  };
  for (int value : node.inputs) count(value);
  for (int value : node.outputs) count(value);
  return slices;
}

// Of one slice's part.
std::vector<size_t> BytesOf(const StepPlan& step, const std::vector<int>& values) {
  std::vector<size_t> bytes;
  for (const int value : values) {
    const int64_t part = value < 0 ? 0 : step.values[static_cast<size_t>(value)].part_bytes();
    bytes.push_back(static_cast<size_t>(part));
  }
  return bytes;
}

}  // namespace

Result<Executor::CompiledNode> Executor::CompileNode(const StepPlan& step, const PlannedNode& node,
                                                     bool in_loop) {
  if (IsTreeNode(node)) return CompileTreeNode(step, node);
  CompiledNode ready;
  if (IsMeshNode(node)) {
    RIDGE_RETURN_IF_ERROR(CheckHostReaches(node, "a --mesh exchanges", "--devices without --mesh"));
    ready.kernel =
        MakeMeshKernel(node, step.name, *program_.place, backend_, communicator_, collective_s_);
  } else {
    RIDGE_ASSIGN_OR_RETURN(ready.kernel, MakeStepKernel(step, node, backend_));
  }
  ready.by_host = node.on_host;
  ready.copies = CopiesOf(program_, step, node);
  const int64_t entries = ready.copies > 1 ? ready.copies : DistinctSlices(step, node);
  for (int slot = 0; slot < kInputSlots; ++slot) {
    for (int64_t entry = 0; entry < entries; ++entry) {
      const int64_t slice = ready.copies > 1 ? 0 : entry;
      Coord coord = {slot, slice};
      coord.micro = entry;
      if (step.tree && in_loop)
        coord.position = step.tree->folds[static_cast<size_t>(slice)].position;
      Operands operands;
      for (int value : node.inputs) operands.inputs.push_back(Address(step, value, coord));
      for (int value : node.outputs) operands.outputs.push_back(Address(step, value, coord));
      ready.operands[static_cast<size_t>(slot)].push_back(std::move(operands));
    }
  }
  if (node.workspace_offset >= 0) ready.workspace = arena_->data() + node.workspace_offset;
  ready.workspace_bytes = static_cast<size_t>(node.choice.workspace_bytes);
  ready.input_bytes = BytesOf(step, node.inputs);
  ready.output_bytes = BytesOf(step, node.outputs);
  ready.within_operands = !IsMeshNode(node) && !step.tree;
  return ready;
}

Status Executor::CheckHostReaches(const PlannedNode& node, const char* what,
                                  const char* hint) const {
  if (arena_->host_visible()) return Status();
  return Status(ErrorCode::kUnsupported,
                fmt::format("{}: {} on the host, which does not reach the memory of {}. hint: {}",
                            node.call.where, what, program_.device, hint));
}

Result<Executor::CompiledNode> Executor::CompileTreeNode(const StepPlan& step,
                                                         const PlannedNode& node) {
  const TreeMemory memory = {program_, step, arena_->data(), arena_->host_visible()};
  if (exchange_ != nullptr)
    RIDGE_RETURN_IF_ERROR(CheckHostReaches(node, "--overlap on exchanges", "--overlap off"));
  CompiledNode ready;
  RIDGE_ASSIGN_OR_RETURN(
      ready.kernel,
      MakeTreeKernel(memory, node, backend_, {in_arena_, exchange_.get(), &collective_s_}));
  ready.by_host = IsCollective(step, node);
  const bool gathers = IsGather(node);
  for (std::vector<Operands>& by_slice : ready.operands) {
    if (gathers) by_slice.push_back(GatheredParts(step, node));
    for (int64_t slice = 0; !gathers && slice < step.slices; ++slice)
      by_slice.push_back({{}, BlocksToAdd(memory, slice)});
  }
  return ready;
}

// The inputs of all slices, slice by slice.
Executor::Operands Executor::GatheredParts(const StepPlan& step, const PlannedNode& node) const {
  Operands operands;
  for (int64_t slice = 0; slice < step.slices; ++slice) {
    for (const int value : node.inputs) operands.inputs.push_back(Address(step, value, {0, slice}));
  }
  operands.outputs.push_back(Address(step, node.outputs[0], {}));
  return operands;
}

void Executor::WatchLoss(const StepPlan& step, CompiledStep& compiled) const {
  const auto loss = step.outputs.find("loss");
  if (loss == step.outputs.end()) return;
  compiled.loss = Address(step, loss->second, {0, step.slices - 1});
  compiled.loss_type = step.values[static_cast<size_t>(loss->second)].type;
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    const auto& made = step.nodes[n].outputs;
    if (std::find(made.begin(), made.end(), loss->second) != made.end())
      compiled.loss_node = static_cast<int>(n);
  }
}

void Executor::MakeVirtual(const StepPlan& step, CompiledStep& compiled) const {
  compiled.planned_s.resize(step.nodes.size());
  for (size_t n = 0; n < step.nodes.size(); ++n) {
    std::unique_ptr<Kernel>& kernel = compiled.nodes[n].kernel;
    kernel = IsCollective(step, step.nodes[n]) ? compute_->Around(std::move(kernel))
                                               : compute_->MakeKernel(compiled.planned_s[n]);
  }
}

// The plan's times may have changed since the last run.
void Executor::StartVirtual(int step, CompiledStep& compiled) const {
  const std::vector<double> planned_s =
      PlannedNodeSeconds(program_.steps[static_cast<size_t>(step)]);
  std::copy(planned_s.begin(), planned_s.end(), compiled.planned_s.begin());
  compute_->Restart();
}

Status Executor::RunNode(CompiledNode& node, Coord coord, Stream& stream) {
  Operands& operands = node.At(coord);
  return node.kernel->Enqueue(stream, {operands.inputs, operands.outputs, node.workspace});
}

MemoryUse Executor::UseOf(CompiledNode& node, Coord coord) {
  const Operands& operands = node.At(coord);
  const auto range = [](const void* at, size_t bytes) {
    return std::span<const std::byte>(static_cast<const std::byte*>(at), at == nullptr ? 0 : bytes);
  };
  MemoryUse use;
  for (size_t i = 0; i < operands.inputs.size(); ++i)
    use.reads.push_back(range(operands.inputs[i], node.input_bytes[i]));
  for (size_t k = 0; k < operands.outputs.size(); ++k)
    use.writes.push_back(range(operands.outputs[k], node.output_bytes[k]));
  use.writes.push_back(range(node.workspace, node.workspace_bytes));
  return use;
}

Status Executor::RecordNode(CompiledNode& node, Coord coord, Stream& stream) {
  if (node.by_host) return CutRecordingBefore(stream, &node, coord);
  LaneRecorder& lanes = recording_->lanes;
  recording_->is_empty = false;
  if (!node.within_operands) {
    lanes.Join();
    return RunNode(node, coord, stream);
  }
  lanes.BeginWork(UseOf(node, coord));
  const Status ran = RunNode(node, coord, stream);
  lanes.EndWork();
  return ran;
}

std::span<std::byte> Executor::MicroBatchBytes(const std::string& state, int64_t micro) const {
  const PersistentValue* value = FindPersistent(state);
  RIDGE_CHECK(value != nullptr, "no state '" + state + "'");
  return {arena_->data() + value->offset_bytes + micro % value->copies * value->copy_bytes(),
          static_cast<size_t>(value->type.bytes())};
}

void Executor::RunInstead(int step, std::function<Status(int slot)> run) {
  instead_[step] = std::move(run);
}

Status Executor::Run(int step, int slot) {
  if (const auto other = instead_.find(step); other != instead_.end()) return other->second(slot);
  CompiledStep& compiled = *compiled_[static_cast<size_t>(step)];
  Stream& stream = device_.stream(0);
  if (timing_) StartTiming(compiled);
  if (compute_ != nullptr) StartVirtual(step, compiled);
  ClearHostSums(compiled);
  transfers_->UploadInputs(step, slot);
  const Status ran = CanRecord(compiled) ? RunRecorded(compiled, slot) : RunBody(compiled, slot);
  // After an error exchanges may be under way, which all ranks have begun.
  if (!ran.ok() && exchange_ != nullptr) exchange_->thread.Drain();
  RIDGE_RETURN_IF_ERROR(ran);
  if (compute_ != nullptr) compute_->Settle();
  return stream.Synchronize();
}

Status Executor::RunBody(CompiledStep& compiled, int slot) {
  ClearSums(compiled);
  if (recording_ != nullptr) recording_->is_empty &= compiled.sums.empty();
  // What is behind the loop sees its last slice.
  return RunRegion(compiled, compiled.body, {slot, compiled.slices - 1, /*position=*/0, micro_});
}

void Executor::SetLanes(int lanes) {
  lanes_ = lanes;
  for (const auto& compiled : compiled_) {
    for (Recorded& recorded : compiled->recorded) recorded = Recorded();
  }
}

bool Executor::CanRecord(const CompiledStep& compiled) const {
  return device_.stream(0).records() && !timing_ && compute_ == nullptr && exchange_ == nullptr &&
         compiled.has_one_address;
}

Status Executor::RunRecorded(CompiledStep& compiled, int slot) {
  Recorded& recorded = compiled.recorded[static_cast<size_t>(slot)];
  if (!std::exchange(compiled.has_run, true)) return RunBody(compiled, slot);
  if (recorded.parts.empty()) RIDGE_RETURN_IF_ERROR(Record(compiled, slot, recorded));
  Stream& stream = device_.stream(0);
  for (size_t i = 0; i < recorded.parts.size(); ++i) {
    if (recorded.parts[i] != nullptr) stream.Play(*recorded.parts[i]);
    if (i == recorded.between.size()) break;
    const Recorded::Between& next = recorded.between[i];
    RIDGE_RETURN_IF_ERROR(next.node == nullptr ? CheckLoss(compiled, stream)
                                               : RunNode(*next.node, next.coord, stream));
  }
  return Status();
}

Status Executor::Record(CompiledStep& compiled, int slot, Recorded& recorded) {
  Stream& stream = device_.stream(0);
  recording_ = &recorded;
  BeginPart(stream);
  const Status ran = RunBody(compiled, slot);
  const Status cut = CutRecording(stream);
  recording_ = nullptr;
  if (ran.ok() && cut.ok()) return Status();
  recorded = Recorded();
  return ran.ok() ? cut : ran;
}

// From here on it is another part; `node` comes before it, or a check of the loss.
Status Executor::CutRecordingBefore(Stream& stream, CompiledNode* node, Coord coord) {
  RIDGE_RETURN_IF_ERROR(CutRecording(stream));
  recording_->between.push_back({node, coord});
  BeginPart(stream);
  return Status();
}

void Executor::BeginPart(Stream& stream) {
  recording_->is_empty = true;
  recording_->lanes.BeginRecording(stream, lanes_);
}

Status Executor::CutRecording(Stream& stream) {
  recording_->lanes.Join();
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Recording> part, stream.EndRecording());
  if (recording_->is_empty) part = nullptr;
  recording_->parts.push_back(std::move(part));
  return Status();
}

Status Executor::RunRegion(CompiledStep& compiled, CompiledRegion& region, Coord coord) {
  if (region.kind == Region::Kind::kParallel) return RunStreams(compiled, region, coord);
  if (region.kind == Region::Kind::kSequence) return RunParts(compiled, region, coord);
  if (region.in_step) return RunInStep(compiled, region, coord);
  for (int64_t slice = 0; slice < region.trips; ++slice)
    RIDGE_RETURN_IF_ERROR(RunParts(compiled, region, {coord.slot, slice, 0, coord.micro}));
  return Status();
}

Status Executor::RunInStep(CompiledStep& compiled, CompiledRegion& loop, Coord coord) {
  for (CompiledRegion& part : loop.parts) {
    for (int64_t slice = 0; slice < loop.trips; ++slice)
      RIDGE_RETURN_IF_ERROR(RunRegion(compiled, part, {coord.slot, slice, 0, coord.micro}));
  }
  return Status();
}

Status Executor::RunParts(CompiledStep& compiled, CompiledRegion& region, Coord coord) {
  for (CompiledRegion& part : region.parts) RIDGE_RETURN_IF_ERROR(RunRegion(compiled, part, coord));
  if (!region.parts.empty()) return Status();
  RIDGE_RETURN_IF_ERROR(RunNodes(compiled, region, coord, device_.stream(0)));
  if (!timing_) return Status();
  RIDGE_RETURN_IF_ERROR(device_.stream(0).Synchronize());
  AddSeconds(compiled, region, coord, /*scale=*/1);
  return Status();
}

Status Executor::RunNodes(CompiledStep& compiled, CompiledRegion& region, Coord coord,
                          Stream& stream) {
  if (timing_) stream.Record(*region.begins);
  for (size_t n = region.first; n < region.end; ++n) {
    CompiledNode& node = compiled.nodes[n];
    if (coord.slice < node.first_slice) continue;
    RIDGE_RETURN_IF_ERROR(recording_ != nullptr ? RecordNode(node, coord, stream)
                                                : RunNode(node, coord, stream));
    if (timing_) stream.Record(*compiled.ends[n]);
    if (static_cast<int>(n) == compiled.loss_node)
      RIDGE_RETURN_IF_ERROR(CheckLoss(compiled, stream));
  }
  return Status();
}

// Where a stream is a thread, it is one of the device's team.  All members of the team take part,
// so libgomp keeps the team.
Status Executor::RunStreams(CompiledStep& compiled, CompiledRegion& region, Coord coord) {
  const auto parts = static_cast<int>(region.parts.size());
  const int streams = std::min(parts, device_.streams());
  if (recording_ != nullptr) return RunParts(compiled, region, coord);  // lanes run it at once
  if (timing_) device_.stream(0).Record(*region.begins);
  Fork(streams);
  device_.ForEachPart(std::max(threads_, parts), [&](int part) {
    if (part >= parts) return;
    CompiledRegion& nodes = region.parts[static_cast<size_t>(part)];
    try {
      nodes.status = RunNodes(compiled, nodes, coord, device_.stream(part % streams));
    } catch (...) {  // a Bug, which must not leave the parallel region by itself
      nodes.thrown = std::current_exception();
    }
  });
  Join(streams);
  if (timing_) device_.stream(0).Record(*region.ends);
  for (const CompiledRegion& nodes : region.parts) {
    if (nodes.thrown) std::rethrow_exception(nodes.thrown);
    RIDGE_RETURN_IF_ERROR(nodes.status);
  }
  return timing_ ? AddStreamSeconds(compiled, region, coord) : Status();
}

// The first streams go on where the main one is.
void Executor::Fork(int streams) {
  if (streams < 2) return;
  device_.stream(0).Record(*joins_[0]);
  for (int i = 1; i < streams; ++i) device_.stream(i).Wait(*joins_[0]);
}

// The main stream goes on where all of them are.
void Executor::Join(int streams) {
  for (int i = 1; i < streams; ++i) {
    Event& join = *joins_[static_cast<size_t>(i)];
    device_.stream(i).Record(join);
    device_.stream(0).Wait(join);
  }
}

void Executor::StartTiming(CompiledStep& compiled) {
  std::fill(compiled.seconds.begin(), compiled.seconds.end(), 0.0);
  if (compiled.ends.empty()) {
    for (size_t n = 0; n < compiled.nodes.size(); ++n) compiled.ends.push_back(device_.MakeEvent());
    compiled.begins = device_.MakeEvent();
    MakeEvents(compiled.body);
  }
  device_.stream(0).Record(*compiled.begins);
}

void Executor::MakeEvents(CompiledRegion& region) {
  region.begins = device_.MakeEvent();
  region.ends = device_.MakeEvent();
  for (CompiledRegion& part : region.parts) MakeEvents(part);
}

// Of the nodes that were enqueued last; returns their sum before it is scaled.
double Executor::AddSeconds(CompiledStep& compiled, const CompiledRegion& nodes, Coord coord,
                            double scale) {
  const double begin = nodes.begins->seconds();
  double before = begin;
  for (size_t n = nodes.first; n < nodes.end; ++n) {
    if (coord.slice < compiled.nodes[n].first_slice) continue;
    const double now = compiled.ends[n]->seconds();
    compiled.seconds[n] += (now - before) * scale;
    before = now;
  }
  return before - begin;
}

// The nodes' seconds are scaled so that they add up to the region's.
Status Executor::AddStreamSeconds(CompiledStep& compiled, const CompiledRegion& region,
                                  Coord coord) {
  RIDGE_RETURN_IF_ERROR(device_.stream(0).Synchronize());
  double sum_s = 0;
  for (const CompiledRegion& nodes : region.parts)
    sum_s += AddSeconds(compiled, nodes, coord, /*scale=*/0);
  const double whole_s = SecondsBetween(*region.begins, *region.ends);
  for (const CompiledRegion& nodes : region.parts)
    AddSeconds(compiled, nodes, coord, sum_s > 0 ? whole_s / sum_s : 0);
  return Status();
}

// The host waits for the loss, so that no update follows one that is not finite.
Status Executor::CheckLoss(const CompiledStep& compiled, Stream& stream) {
  if (recording_ != nullptr) return CutRecordingBefore(stream, /*node=*/nullptr, {});
  RIDGE_RETURN_IF_ERROR(stream.Synchronize());
  const TensorType& type = compiled.loss_type;
  RIDGE_ASSIGN_OR_RETURN(const bool finite,
                         transfers_->AllFinite(type.dtype, type.elements(), compiled.loss));
  if (finite) return Status();
  RIDGE_ASSIGN_OR_RETURN(const double loss, transfers_->Number(type.dtype, compiled.loss));
  if (std::isnan(loss)) return Status(ErrorCode::kFailed, "loss is nan");  // whatever its sign
  return Status(ErrorCode::kFailed, fmt::format("loss is {}", loss));
}

Result<double> Executor::TimeNode(int step, int node, int slot) {
  CompiledStep& compiled = *compiled_[static_cast<size_t>(step)];
  Stream& stream = device_.stream(0);
  const double before = MonotonicSeconds();
  RIDGE_RETURN_IF_ERROR(
      RunNode(compiled.nodes[static_cast<size_t>(node)], {slot, compiled.slices - 1}, stream));
  if (exchange_ != nullptr) exchange_->thread.Drain();
  RIDGE_RETURN_IF_ERROR(stream.Synchronize());
  return MonotonicSeconds() - before;
}

int Executor::StepIndex(const std::string& name) const {
  for (size_t i = 0; i < program_.steps.size(); ++i) {
    if (program_.steps[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

bool Executor::HasOutput(int step, const std::string& name) const {
  return program_.steps[static_cast<size_t>(step)].outputs.contains(name);
}

const TensorType& Executor::OutputType(int step, const std::string& name) const {
  const StepPlan& plan = program_.steps[static_cast<size_t>(step)];
  return plan.values[static_cast<size_t>(plan.outputs.at(name))].type;
}

const std::vector<double>& Executor::NodeSeconds(int step) const {
  return compiled_[static_cast<size_t>(step)]->seconds;
}

double Executor::BeganSeconds(int step) const {
  return compiled_[static_cast<size_t>(step)]->begins->seconds();
}

const PersistentValue* Executor::FindPersistent(const std::string& name) const {
  for (const PersistentValue& value : program_.persistent) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

namespace {

// Whether the step reads persistent value `index`, an input in `slot`.
bool Reads(const Program& program, const StepPlan& step, size_t index, int slot) {
  return std::any_of(step.values.begin(), step.values.end(), [&](const PlannedValue& value) {
    return value.persistent &&
           InSlot(program.persistent, static_cast<size_t>(value.persistent_index), slot) == index;
  });
}

}  // namespace

// What the step does not read may never have been uploaded.
Result<std::string> Executor::NonFiniteStart(const StepPlan& step, int slot) {
  for (size_t i = 0; i < program_.persistent.size(); ++i) {
    const PersistentValue& value = program_.persistent[i];
    const bool input = value.kind == ValueKind::kInput;
    if (input && (value.slot != slot || !Reads(program_, step, i, slot))) continue;
    const bool sum =
        std::find(step.sums.begin(), step.sums.end(), static_cast<int>(i)) != step.sums.end();
    if (sum) continue;  // of a step that has ended
    const int64_t count = ElementsIn(value.layout, value.type, value.size_bytes);
    RIDGE_ASSIGN_OR_RETURN(
        const bool finite,
        transfers_->AllFinite(value.type.dtype, count, arena_->data() + value.offset_bytes));
    if (finite) continue;
    if (!input) return fmt::format("variable '{}' before the step", value.name);
    const bool rounded = Is16BitFloat(value.type.dtype);  // the data may have larger numbers
    return fmt::format("input '{}'{}{}", value.name, rounded ? " in " : "",
                       rounded ? DTypeName(value.type.dtype) : "");
  }
  return std::string();
}

Result<std::string> Executor::FirstNonFinite(int step, int slot) {
  const StepPlan& plan = program_.steps[static_cast<size_t>(step)];
  RIDGE_ASSIGN_OR_RETURN(std::string first, NonFiniteStart(plan, slot));
  const Region* loop = MicroBatchLoop(plan);
  const bool in_step = loop != nullptr && loop->in_step;
  // Ranks that exchange go on to the end, since others may find their first one elsewhere.
  const bool together = in_step && plan.tree->share.ranks > 1;
  if (!first.empty() && !together) return first;
  const CompiledStep& compiled = *compiled_[static_cast<size_t>(step)];
  ClearHostSums(compiled);
  ClearSums(compiled);
  const int nodes = compiled.loss_node + 1;
  const int64_t slices = compiled.slices;
  for (int64_t i = 0; i < nodes * slices; ++i) {
    const int node = static_cast<int>(in_step ? i / slices : i % nodes);
    const int64_t slice = in_step ? i % slices : i / nodes;
    RIDGE_ASSIGN_OR_RETURN(std::string found, NonFiniteAfter(step, node, {slot, slice}));
    if (first.empty()) first = std::move(found);
    if (!first.empty() && !together) return first;
  }
  return first;
}

// Runs the node.
Result<std::string> Executor::NonFiniteAfter(int step, int n, Coord coord) {
  const StepPlan& plan = program_.steps[static_cast<size_t>(step)];
  CompiledNode& node = compiled_[static_cast<size_t>(step)]->nodes[static_cast<size_t>(n)];
  const PlannedNode& planned = plan.nodes[static_cast<size_t>(n)];
  const bool sums = IsTreeNode(planned) && !IsGather(planned);
  if (coord.slice < node.first_slice || sums) return std::string();
  RIDGE_RETURN_IF_ERROR(RunNode(node, coord, device_.stream(0)));
  for (size_t k = 0; k < planned.outputs.size(); ++k) {
    const PlannedValue& made = plan.values[static_cast<size_t>(planned.outputs[k])];
    const int64_t count = ElementsIn(made.layout, made.type, made.part_bytes());
    RIDGE_ASSIGN_OR_RETURN(const bool finite, transfers_->AllFinite(made.type.dtype, count,
                                                                    node.At(coord).outputs[k]));
    if (!finite) return fmt::format("node '{}' ({})", planned.name, planned.op);
  }
  return std::string();
}

}  // namespace ridge
