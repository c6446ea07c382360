#include "ridge/train/job/first_runs.h"

#include "ridge/train/job/scalar_inputs.h"

namespace ridge {
namespace {

// The kernels that copy variables for a checkpoint.
Status ReadVariables(Executor& executor) {
  const std::vector<PersistentValue>& values = executor.program().persistent;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].kind != ValueKind::kInput && values[i].layout != kRowMajor)
      RIDGE_RETURN_IF_ERROR(executor.transfers().Read(i).status());
  }
  return Status();
}

// `update` has no batch, so it runs on slot 0 alone.
Status RunOnSlot(Executor& executor, int slot) {
  for (size_t i = 0; i < executor.program().steps.size(); ++i) {
    if (slot > 0 && executor.program().steps[i].name == "update") continue;
    const Status status = executor.Run(static_cast<int>(i), slot);
    if (status.code() != ErrorCode::kFailed) RIDGE_RETURN_IF_ERROR(status);
  }
  return Status();
}

int64_t UsedBytes(Executor& executor) {
  return executor.backend().device().used_bytes().value_or(0);
}

}  // namespace

Status RunAllSteps(Executor& executor, const PlannedJob& job, DeviceReadings& use) {
  RIDGE_RETURN_IF_ERROR(executor.transfers().Initialize(job.options.seed));
  ScalarInputs scalars(executor, job.lr_dtype, job.options.batch);
  for (const int slot : {0, 1}) scalars.Write(slot, /*lr=*/0, /*updates=*/0, {job.options.seed, 0});
  RIDGE_RETURN_IF_ERROR(ReadVariables(executor));
  RIDGE_RETURN_IF_ERROR(RunOnSlot(executor, 0));
  use.kernels = UsedBytes(executor);
  return RecordAllSteps(executor, use);
}

Status RecordAllSteps(Executor& executor, DeviceReadings& use) {
  if (executor.backend().device().stream(0).records()) {
    for (const int slot : {0, 1}) RIDGE_RETURN_IF_ERROR(RunOnSlot(executor, slot));
  }
  use.graphs = UsedBytes(executor);
  return Status();
}

}  // namespace ridge
