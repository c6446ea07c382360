#include "ridge/train/loop/measured_bytes.h"

#include "ridge/plan/mesh_nodes.h"
#include "ridge/train/job/scalar_inputs.h"

namespace ridge {

int64_t MeasuredSlotBytes(Executor& executor, const JobData& data,
                          const std::vector<LengthForm>& lengths, int64_t batch) {
  std::vector<BatchSpec> specs = {data.train_spec};
  if (data.eval_set() != nullptr) specs.push_back(data.eval_spec);
  const std::optional<SliceShare> share = SampleShareOf(executor.program());
  const auto rows = [&](int64_t samples) {
    return share ? share->OwnedSamples(samples).count() : samples;
  };
  int64_t bytes = SlotBytes(executor, specs, rows(batch));
  for (size_t i = 0; i < lengths.size(); ++i)
    bytes += SlotBytes(executor, {data.length_specs[i]}, rows(lengths[i].batch));
  return bytes;
}

std::optional<DeviceBytes> EndDeviceBytes(const Machine& machine, int64_t used_bytes,
                                          int64_t peak_bytes) {
  if (machine.bytes == nullptr) return std::nullopt;
  machine.bytes->End(used_bytes, peak_bytes);
  return machine.bytes->bytes();
}

}  // namespace ridge
