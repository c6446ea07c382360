// Executor: runs a Program's StepPlans in one arena.
//
// Create() maps the arena and creates the kernels; a run uses nothing else.  Not thread-safe.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ridge/backend/backend.h"
#include "ridge/plan/program.h"
#include "ridge/runtime/arena.h"

namespace ridge {

class Executor {
 public:
  // Maps the arena and creates every kernel.  `backend` must outlive the executor.
  static Result<std::unique_ptr<Executor>> Create(Program program, Backend& backend);
  ~Executor();

  const Program& program() const { return program_; }
  Program& mutable_program() { return program_; }  // change times only: offsets are compiled in
  const Arena& arena() const { return arena_; }
  int threads() const { return threads_; }  // of the backend

  // Makes the whole arena resident with all threads: in a step, one thread may take many page
  // faults alone.  REQUIRES: nothing in the arena is needed; its contents become zeros.
  void TouchArena();

  // Fills parameters and states with their initial values.
  void InitializeVariables(uint64_t seed);

  // Bytes of a persistent value; slot 0 or 1 for inputs.  nullptr when there is none.
  // REQUIRES: the value is row-major (inputs always are; variables: see RowMajor).
  void* Persistent(const std::string& name, int slot = 0);
  const PersistentValue* FindPersistent(const std::string& name) const;

  // Row-major access to program().persistent[index] in any layout.  RowMajor() returns its
  // row-major bytes: the value itself, or, for another layout, a buffer in the scratch region that
  // holds one variable at a time; Unpack() fills that buffer and Pack() writes it back, and both
  // overwrite the outputs of the last step.
  void* RowMajor(size_t index);
  void Unpack(size_t index);
  void Pack(size_t index);

  // Runs StepPlan `step` (an index into program().steps) on input slot `slot`, slice after slice.
  // Fails with kFailed right after the node that makes the output "loss" when that is not finite:
  // the parameters, which are updated later, have not changed.
  Status Run(int step, int slot);
  int StepIndex(const std::string& name) const;  // -1 when there is none

  // An output of the step that ran last, row-major.  Valid until the next Run().
  const void* Output(int step, const std::string& name) const;
  const TensorType& OutputType(int step, const std::string& name) const;

  // Runs one node once, on whatever the arena holds, and returns its wall seconds.
  Result<double> TimeNode(int step, int node, int slot);
  // Wall seconds of each node in the last run of `step`, over all slices; measured while timing is
  // on.
  void SetTiming(bool on) { timing_ = on; }
  const std::vector<double>& NodeSeconds(int step) const;
  // Reruns `step` up to the loss and names the node that first produces a NaN or infinity:
  // "node 'conv1' (conv)", or the variable that already held one; empty when there is none.
  Result<std::string> FirstNonFinite(int step, int slot);

 private:
  struct CompiledStep;
  struct CompiledNode;
  Executor(Program program, Backend& backend, Arena arena);
  Status Compile();
  Result<CompiledNode> CompileNode(const StepPlan& step, const PlannedNode& node) const;
  Result<Kernel*> LayoutCopy(const PersistentValue& value, bool pack);
  Status MakeLayoutCopies();
  void CopyLayout(size_t index, bool pack);
  void Clear(const PersistentValue& value);
  void InitializeRowMajor(const std::vector<size_t>& values, uint64_t seed);
  struct Place;
  std::byte* Address(const StepPlan& step, int value, Place place) const;
  struct Section;
  static std::vector<Section> SectionsOf(const StepPlan& step);
  Status RunSlice(CompiledStep& compiled, int slot, int64_t slice);
  Status RunNodes(CompiledStep& compiled, std::span<const size_t> nodes, Place place);
  Status RunSideBySide(CompiledStep& compiled, Section& section, Place place);
  static void ScaleSeconds(const Section& section, double whole_s, std::vector<double>& seconds);
  std::vector<std::span<std::byte>> SumsToClear(const StepPlan& step) const;
  void WatchLoss(const StepPlan& step, CompiledStep& compiled) const;
  static Status RunNode(CompiledNode& node, Place place);
  Status CheckLoss(const CompiledStep& compiled) const;
  std::string NonFiniteStart(const StepPlan& step, int slot) const;
  Result<std::string> FirstNonFiniteIn(int step, Place place);

  Program program_;
  Backend& backend_;
  Arena arena_;
  int threads_ = 1;
  std::vector<std::unique_ptr<CompiledStep>> compiled_;
  std::map<std::string, std::unique_ptr<Kernel>> layout_copies_;  // by KernelChoice::key
  bool timing_ = false;
};

}  // namespace ridge
