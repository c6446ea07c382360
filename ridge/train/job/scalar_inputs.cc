#include "ridge/train/job/scalar_inputs.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "ridge/learn/training_graph.h"
#include "ridge/plan/tree_sums.h"

namespace ridge {
namespace {

// An input that is not double-buffered has one address for both slots.
void* Find(Executor& executor, const char* name, int slot) {
  void* data = executor.transfers().Input(name, slot);
  return data != nullptr ? data : executor.transfers().Input(name, 0);
}

// Sends a batch to the device as soon as it is in the slot.
std::function<void()> UploaderOf(Executor& executor, const BatchSpec& spec, int slot) {
  std::vector<std::string> names;
  for (const InputSpec& input : spec.inputs) names.push_back(input.name);
  return [&executor, names = std::move(names), slot] {
    executor.transfers().UploadAhead(slot, names);
  };
}

}  // namespace

BatchSpec AsPlanned(const Program& program, BatchSpec spec) {
  std::map<std::string_view, DType> types;
  for (const PersistentValue& value : program.persistent) {
    if (value.kind == ValueKind::kInput) types.emplace(value.name, value.type.dtype);
  }
  std::erase_if(spec.inputs, [&](const InputSpec& input) { return !types.contains(input.name); });
  for (InputSpec& input : spec.inputs) input.type.dtype = types.at(input.name);
  return spec;
}

std::vector<BatchSlot> InputSlots(Executor& executor, const BatchSpec& spec) {
  std::vector<BatchSlot> slots(2);
  for (int slot = 0; slot < 2; ++slot) {
    for (const InputSpec& input : spec.inputs) {
      void* data = executor.transfers().Input(input.name, slot);
      RIDGE_CHECK(data != nullptr, "no input slot for '" + input.name + "'");
      RIDGE_CHECK(executor.FindPersistent(input.name)->type.dtype == input.type.dtype,
                  "the slot of '" + input.name + "' has another type");
      slots[static_cast<size_t>(slot)].inputs.push_back(data);
    }
    if (executor.transfers().uploads_ahead())
      slots[static_cast<size_t>(slot)].filled = UploaderOf(executor, spec, slot);
  }
  return slots;
}

int64_t SlotBytes(Executor& executor, const std::vector<BatchSpec>& specs, int64_t batch) {
  std::map<const void*, int64_t> bytes;
  for (const BatchSpec& given : specs) {
    const BatchSpec spec = AsPlanned(executor.program(), given);
    for (const BatchSlot& slot : InputSlots(executor, spec)) {
      for (size_t i = 0; i < spec.inputs.size(); ++i)
        bytes[slot.inputs[i]] = batch * spec.inputs[i].type.bytes();
    }
  }
  int64_t sum = 0;
  for (const auto& [address, size] : bytes) sum += size;
  return sum;
}

ScalarInputs::ScalarInputs(Executor& executor, DType lr_dtype, int64_t batch)
    : lr_dtype_(lr_dtype), batch_(batch) {
  if (const PersistentValue* rng = executor.FindPersistent(kRngInput)) slices_ = rng->slices;
  share_ = ShareOf(executor.program()).value_or(SliceShare{slices_, 0, 1});
  for (int slot = 0; slot < 2; ++slot) {
    slots_[static_cast<size_t>(slot)] = {
        Find(executor, kLrInput, slot), static_cast<int64_t*>(Find(executor, kStepInput, slot)),
        static_cast<int64_t*>(Find(executor, kRngInput, slot)),
        static_cast<int64_t*>(Find(executor, kRoundingInput, slot))};
  }
}

std::vector<std::string> ScalarInputs::BatchInputs(const Program& program) {
  constexpr std::string_view kWritten[] = {kLrInput, kStepInput, kRngInput, kRoundingInput};
  std::vector<std::string> names;
  for (const PersistentValue& value : program.persistent) {
    const bool written =
        std::find(std::begin(kWritten), std::end(kWritten), value.name) != std::end(kWritten);
    if (value.kind == ValueKind::kInput && !written) names.push_back(value.name);
  }
  return names;
}

void ScalarInputs::Write(int slot, double lr, int64_t updates, const Rng& rng) {
  const Slot& to = slots_[static_cast<size_t>(slot)];
  if (to.lr != nullptr) StoreFromDouble(lr_dtype_, to.lr, 0, lr);
  if (to.step != nullptr) *to.step = updates + 1;
  if (to.rounding != nullptr) {
    to.rounding[0] = static_cast<int64_t>(rng.seed);
    to.rounding[1] = updates;
  }
  if (to.rng == nullptr) return;
  const int64_t slice_samples = (rng.samples > 0 ? rng.samples : batch_) / share_.slices;
  for (int64_t slice = 0; slice < slices_; ++slice) {
    int64_t* row = to.rng + 3 * slice;
    row[0] = static_cast<int64_t>(rng.seed);
    row[1] = updates;
    row[2] = rng.first_sample + (share_.owned().first + slice) * slice_samples;
  }
}

}  // namespace ridge
