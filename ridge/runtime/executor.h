// Executor: runs a Program's StepPlans in one arena.
//
// The arena is mapped once; kernels are created once; a run touches nothing else.  Not thread-safe.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/backend/backend.h"
#include "ridge/plan/program.h"

namespace ridge {

// One mapping for everything the plan places.
class Arena {
 public:
  static Result<Arena> Map(int64_t bytes);
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  int64_t resident_bytes() const;  // pages that have become resident

 private:
  Arena(std::byte* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

class Executor {
 public:
  // Maps the arena and creates every kernel.  `backend` must outlive the executor.
  static Result<std::unique_ptr<Executor>> Create(Program program, Backend& backend);
  ~Executor();

  const Program& program() const { return program_; }
  Program& mutable_program() { return program_; }  // times only: offsets are compiled in
  const Arena& arena() const { return arena_; }

  // Fills parameters and states with their initial values.
  void InitializeVariables(uint64_t seed);

  // Bytes of a persistent value; slot 0 or 1 for inputs.  nullptr when there is none.
  void* Persistent(const std::string& name, int slot = 0);
  const PersistentValue* FindPersistent(const std::string& name) const;

  // Runs StepPlan `step` (an index into program().steps) on input slot `slot`.
  Status Run(int step, int slot);
  int StepIndex(const std::string& name) const;  // -1 when there is none

  // An output of the step that ran last, row-major.  Valid until the next Run().
  const void* Output(int step, const std::string& name) const;
  const TensorType& OutputType(int step, const std::string& name) const;

  // Per-node wall seconds of the runs since timing was switched on; by step, then node.
  void SetTiming(bool on);
  const std::vector<double>& NodeSeconds(int step) const;  // of the last run
  // Name of the first node of the last run of `step` whose float output holds a NaN or infinity,
  // found by running the step again with checks; empty when none does.
  Result<std::string> FirstNonFinite(int step, int slot);

 private:
  struct CompiledStep;
  struct CompiledNode;
  Executor(Program program, Arena arena);

  Program program_;
  Arena arena_;
  std::vector<std::unique_ptr<CompiledStep>> compiled_;
  bool timing_ = false;
};

}  // namespace ridge
