// A pass starts at the same position each time, so that its samples are the same and, but for the
// first pass, in the system's cache.
#include "ridge/measure/time_data.h"

#include <algorithm>

#include "ridge/core/process.h"
#include "ridge/core/tensor.h"

namespace ridge {
namespace {

constexpr int64_t kSlowBatches = 8;  // of a pass, where reading is slow
constexpr int kLeastPasses = 3;
constexpr int kSlots = 2;

TensorType InputType(const TensorType& field) {
  if (field.dtype != DType::kU8 || field.elements() == 1) return field;
  const bool picture = field.rank() == 3 && (field.dims[2] == 1 || field.dims[2] == 3);
  if (!picture) return {DType::kF32, field.dims};
  return {DType::kF32, {field.dims[2], field.dims[0], field.dims[1]}};
}

BatchSpec InputsOf(const Source& source) {
  BatchSpec spec;
  for (const Field& field : source.fields())
    spec.inputs.push_back({field.name, InputType(field.type), field.name});
  return spec;
}

struct Pass {
  double seconds = 0;
  StageSeconds stages;
};

class Bench {
 public:
  static Result<Bench> Create(const SourcePtr& source, const DataBenchOptions& options,
                              int workers) {
    Bench bench;
    const BatchSpec spec = InputsOf(*source);
    LoaderOptions loading;
    loading.batch = std::min(options.batch, source->size());
    loading.drop_last = false;
    loading.seed = options.seed;
    loading.workers = workers;
    loading.time_stages = true;
    RIDGE_ASSIGN_OR_RETURN(
        bench.loader_,
        BatchLoader::Create(source, spec, loading, bench.MakeSlots(spec, loading.batch)));
    bench.batches_ = bench.loader_->batches_per_epoch();
    if (source->reads_slowly()) bench.batches_ = std::min(bench.batches_, kSlowBatches);
    return bench;
  }

  int64_t batches() const { return batches_; }

  Result<Pass> Fastest(double seconds) {
    Pass fastest;
    const double begin = MonotonicSeconds();
    for (int i = 0; i < kLeastPasses || MonotonicSeconds() - begin < seconds; ++i) {
      RIDGE_ASSIGN_OR_RETURN(const Pass pass, Run());
      if (i == 0 || pass.seconds < fastest.seconds) fastest = pass;
    }
    return fastest;
  }

 private:
  std::vector<BatchSlot> MakeSlots(const BatchSpec& spec, int64_t batch) {
    std::vector<BatchSlot> slots(kSlots);
    for (BatchSlot& slot : slots) {
      for (const InputSpec& input : spec.inputs) {
        TensorType type = input.type;
        type.dims.insert(type.dims.begin(), batch);
        memory_.emplace_back(type);
        slot.inputs.push_back(memory_.back().mutable_data());
      }
    }
    return slots;
  }

  Result<Pass> Run() {
    loader_->Stop();
    const StageSeconds before = loader_->stage_seconds();
    const double begin = MonotonicSeconds();
    RIDGE_RETURN_IF_ERROR(loader_->Restart({}));
    for (int64_t i = 0; i < batches_; ++i) {
      RIDGE_ASSIGN_OR_RETURN(const LoadedBatch batch, loader_->Next());
      loader_->Release(batch.slot);
    }
    Pass pass;
    pass.seconds = MonotonicSeconds() - begin;
    loader_->Stop();
    pass.stages = loader_->stage_seconds().Since(before);
    return pass;
  }

  std::vector<Tensor> memory_;  // of the slots
  std::unique_ptr<BatchLoader> loader_;
  int64_t batches_ = 0;
};

}  // namespace

Result<DataBench> BenchData(const SourcePtr& source, const DataBenchOptions& options) {
  DataBench result;
  RIDGE_ASSIGN_OR_RETURN(Bench one, Bench::Create(source, options, /*workers=*/1));
  result.samples =
      std::min(source->size(), one.batches() * std::min(options.batch, source->size()));
  const auto samples = static_cast<double>(result.samples);
  RIDGE_ASSIGN_OR_RETURN(const Pass alone, one.Fastest(options.seconds));
  result.one_core = alone.stages;
  result.one_core_samples_s = result.samples_s = samples / alone.seconds;
  result.workers = source->reads_slowly() ? options.workers : 1;
  if (result.workers == 1) return result;
  RIDGE_ASSIGN_OR_RETURN(Bench several, Bench::Create(source, options, result.workers));
  RIDGE_ASSIGN_OR_RETURN(const Pass together, several.Fastest(options.seconds));
  result.samples_s = samples / together.seconds;
  return result;
}

}  // namespace ridge
