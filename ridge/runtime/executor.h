// Executor: runs a Program's StepPlans in one arena, on the streams of its backend's device.
//
// Create() allocates the arena and creates the kernels; a run uses nothing else.  Not thread-safe.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ridge/backend/backend.h"
#include "ridge/dist/communicator.h"
#include "ridge/plan/program.h"
#include "ridge/runtime/transfers.h"
#include "ridge/runtime/virtual_compute.h"

namespace ridge {

class LaneRecorder;
struct MemoryUse;
struct TreeExchange;

class Executor {
 public:
  // Allocates the arena on the backend's device and creates every kernel.  `backend` must outlive
  // the executor, and so must `communicator`, over which the program's collectives run; without it
  // they fail.  With `compute`, which outlives it too, kernels that exchange nothing only last as
  // long as they are planned.  Fails with kUnsupported where a tree's sums lie in memory that the
  // host does not reach.
  static Result<std::unique_ptr<Executor>> Create(Program program, Backend& backend,
                                                  Communicator* communicator = nullptr,
                                                  VirtualCompute* compute = nullptr);
  ~Executor();

  const Program& program() const { return program_; }
  Program& mutable_program() { return program_; }  // change times only: offsets are compiled in
  const Memory& arena() const { return *arena_; }
  // Device::used_bytes() when the arena was allocated and no kernel made.
  std::optional<int64_t> used_with_arena() const { return used_with_arena_; }
  Backend& backend() { return backend_; }
  Communicator* communicator() { return communicator_; }  // nullptr: one rank
  int threads() const { return threads_; }                // of the backend

  // Makes the whole arena resident: in a step, one thread may take many page faults alone.
  // REQUIRES: nothing in the arena is needed; it may be lost.
  void TouchArena() { arena_->MakeResident(); }

  // How many pieces of work of a recorded step may run at once; 1 at first.  What was recorded is
  // dropped.  Bits do not depend on it.
  void SetLanes(int lanes);
  int lanes() const { return lanes_; }

  // The way to what lies in the arena: inputs, variables, outputs.
  Transfers& transfers() { return *transfers_; }
  const Transfers& transfers() const { return *transfers_; }
  const PersistentValue* FindPersistent(const std::string& name) const;

  // Runs StepPlan `step` (an index into program().steps) on input slot `slot`, slice after slice.
  // Fails with kFailed right after the node that makes the output "loss" when that is not finite:
  // the parameters, which are updated later, have not changed.
  Status Run(int step, int slot);
  // Of which micro batch of its update the next runs are: where states of micro batches have
  // copies, micro batch i has copy i modulo their number.
  void SetMicroBatch(int64_t micro) { micro_ = micro; }
  // The bytes of a state of a micro batch.  REQUIRES: the host reaches the arena.
  std::span<std::byte> MicroBatchBytes(const std::string& state, int64_t micro) const;
  // From now on Run(step) calls `run` with the slot; its outputs are those of the step all the
  // same.
  void RunInstead(int step, std::function<Status(int slot)> run);
  int StepIndex(const std::string& name) const;  // -1 when there is none

  // The outputs are read through transfers().
  bool HasOutput(int step, const std::string& name) const;
  // REQUIRES: there is one.
  const TensorType& OutputType(int step, const std::string& name) const;

  // Of the host's memory, through which exchanges with other ranks go; 0: none does.
  int64_t staged_exchange_bytes() const { return staged_exchange_bytes_; }

  // Runs one node once, on whatever the arena holds, and returns its wall seconds.
  Result<double> TimeNode(int step, int node, int slot);
  // Seconds of each node in the last run of `step`, over all slices, by the device's clock;
  // measured while timing is on.
  void SetTiming(bool on) { timing_ = on; }
  const std::vector<double>& NodeSeconds(int step) const;
  double BeganSeconds(int step) const;  // of that run, by the same clock
  // In collectives, of all runs so far: what moves bytes between ranks, adds them, and waits for
  // other ranks.
  double collective_s() const { return collective_s_; }
  void AddCollectiveSeconds(double seconds) { collective_s_ += seconds; }
  // Reruns `step` up to the loss and names the node that first produces a NaN or infinity:
  // "node 'conv1' (conv)", or the variable that already held one; empty when there is none.
  Result<std::string> FirstNonFinite(int step, int slot);

 private:
  struct CompiledStep;
  struct CompiledNode;
  struct CompiledRegion;
  struct Coord;
  struct Operands;
  struct Recorded;
  Executor(Program program, Backend& backend, std::unique_ptr<Memory> arena,
           Communicator* communicator, VirtualCompute* compute);
  Status FindRanksOfArena();
  Status Compile();
  Result<CompiledNode> CompileNode(const StepPlan& step, const PlannedNode& node, bool in_loop);
  Result<CompiledNode> CompileTreeNode(const StepPlan& step, const PlannedNode& node);
  Status CheckHostReaches(const PlannedNode& node, const char* what, const char* hint) const;
  Operands GatheredParts(const StepPlan& step, const PlannedNode& node) const;
  int SumOf(const StepPlan& step, int value, int64_t slice) const;
  std::byte* Address(const StepPlan& step, int value, Coord coord) const;
  void ListSums(const StepPlan& step, CompiledStep& compiled) const;
  void ClearHostSums(const CompiledStep& compiled);
  void ClearSums(const CompiledStep& compiled);
  void WatchLoss(const StepPlan& step, CompiledStep& compiled) const;
  void MakeVirtual(const StepPlan& step, CompiledStep& compiled) const;
  void StartVirtual(int step, CompiledStep& compiled) const;
  void StartTiming(CompiledStep& compiled);
  void MakeEvents(CompiledRegion& region);

  Status RunBody(CompiledStep& compiled, int slot);
  bool CanRecord(const CompiledStep& compiled) const;
  Status RunRecorded(CompiledStep& compiled, int slot);
  Status Record(CompiledStep& compiled, int slot, Recorded& recorded);
  Status CutRecording(Stream& stream);
  void BeginPart(Stream& stream);
  Status CutRecordingBefore(Stream& stream, CompiledNode* node, Coord coord);
  Status RunRegion(CompiledStep& compiled, CompiledRegion& region, Coord coord);
  Status RunInStep(CompiledStep& compiled, CompiledRegion& loop, Coord coord);
  Status RunParts(CompiledStep& compiled, CompiledRegion& region, Coord coord);
  Status RunNodes(CompiledStep& compiled, CompiledRegion& region, Coord coord, Stream& stream);
  Status RunStreams(CompiledStep& compiled, CompiledRegion& region, Coord coord);
  void Fork(int streams);
  void Join(int streams);
  static Status RunNode(CompiledNode& node, Coord coord, Stream& stream);
  static MemoryUse UseOf(CompiledNode& node, Coord coord);
  Status RecordNode(CompiledNode& node, Coord coord, Stream& stream);
  static double AddSeconds(CompiledStep& compiled, const CompiledRegion& nodes, Coord coord,
                           double scale);
  Status AddStreamSeconds(CompiledStep& compiled, const CompiledRegion& region, Coord coord);
  Status CheckLoss(const CompiledStep& compiled, Stream& stream);
  Result<std::string> NonFiniteStart(const StepPlan& step, int slot);
  Result<std::string> NonFiniteAfter(int step, int n, Coord coord);

  Program program_;
  Backend& backend_;
  Device& device_;
  std::unique_ptr<Memory> arena_;
  std::optional<int64_t> used_with_arena_;
  Communicator* const communicator_;
  std::unique_ptr<Communicator> staged_;  // through the host's memory; null: nothing is
  int64_t staged_exchange_bytes_ = 0;
  Communicator* in_arena_ = nullptr;  // the ranks, for what lies in the arena
  VirtualCompute* const compute_;     // null: kernels run
  int threads_ = 1;
  int lanes_ = 1;
  std::unique_ptr<TreeExchange> exchange_;  // null: exchanges run in line, or none does
  std::unique_ptr<Transfers> transfers_;
  std::vector<std::unique_ptr<CompiledStep>> compiled_;
  std::vector<std::unique_ptr<Event>> joins_;  // by stream; the main one's is where others begin
  bool timing_ = false;
  Recorded* recording_ = nullptr;  // what is enqueued now is kept there
  double collective_s_ = 0;
  int64_t micro_ = 0;
  std::map<int, std::function<Status(int slot)>> instead_;  // by step
};

}  // namespace ridge
