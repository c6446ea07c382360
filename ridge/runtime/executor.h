// Executor: runs a Program's StepPlans in one arena.
//
// The arena is mapped once; kernels are created once; a run touches nothing else.  Not thread-safe.
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
  Program& mutable_program() { return program_; }  // times only: offsets are compiled in
  const Arena& arena() const { return arena_; }
  int threads() const { return threads_; }  // of the backend

  // Makes the whole arena resident, with all threads: in a step, pages come where one thread is at
  // work as well.  REQUIRES: nothing in the arena is needed; its contents become zeros.
  void TouchArena();

  // Fills parameters and states with their initial values.
  void InitializeVariables(uint64_t seed);

  // Bytes of a persistent value; slot 0 or 1 for inputs.  nullptr when there is none.
  // REQUIRES: it is row-major (inputs always are; variables: see RowMajor).
  void* Persistent(const std::string& name, int slot = 0);
  const PersistentValue* FindPersistent(const std::string& name) const;

  // Row-major access to program().persistent[index] in any layout.  RowMajor() tells where its
  // row-major bytes are read and written: where it lies, or, in another layout, in the scratch
  // region, one variable at a time; then Unpack() brings them there and Pack() takes them back,
  // and the outputs of the last step are lost.
  void* RowMajor(size_t index);
  void Unpack(size_t index);
  void Pack(size_t index);

  // Runs StepPlan `step` (an index into program().steps) on input slot `slot`, slice after slice.
  // Stops with kFailed right after the output named "loss" when that is a NaN or infinite: the
  // updates of parameters, which come later, have not happened then.
  Status Run(int step, int slot);
  int StepIndex(const std::string& name) const;  // -1 when there is none

  // An output of the step that ran last, row-major.  Valid until the next Run().
  const void* Output(int step, const std::string& name) const;
  const TensorType& OutputType(int step, const std::string& name) const;

  // Runs one node alone, once, and returns its wall seconds; what it reads is whatever the arena
  // holds.
  Result<double> TimeNode(int step, int node, int slot);
  // Wall seconds of each node of the last run of `step`, of all its slices; measured while timing
  // is on.
  void SetTiming(bool on) { timing_ = on; }
  const std::vector<double>& NodeSeconds(int step) const;
  // Runs `step` again up to the loss and says which node first makes a NaN or infinity:
  // "node 'conv1' (conv)", or the variable that held one before; empty when there is none.
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
