#include "ridge/plan/staging.h"

#include <algorithm>

#include "ridge/core/rounding.h"

namespace ridge {

int64_t OutputBytes(const PlannedValue& output) {
  return output.slice_bytes > 0 && !output.persistent ? output.size_bytes : output.type.bytes();
}

int64_t StagingBufferBytes(const Program& program) {
  int64_t bytes = kStagingPieceBytes;
  for (const PersistentValue& value : program.persistent) {
    if (value.kind != ValueKind::kInput) bytes = std::max(bytes, value.type.bytes());
  }
  for (const StepPlan& step : program.steps) {
    for (const auto& [name, value] : step.outputs)
      bytes = std::max(bytes, OutputBytes(step.values[static_cast<size_t>(value)]));
  }
  return bytes;
}

int64_t StagingBytes(const Program& program) {
  constexpr int64_t kHostPage = 4096;
  int64_t bytes = StagingBufferBytes(program);
  for (const PersistentValue& value : program.persistent) {
    if (value.kind == ValueKind::kInput) bytes += program.memory.Aligned(value.size_bytes);
  }
  return RoundUp(bytes, kHostPage);
}

}  // namespace ridge
