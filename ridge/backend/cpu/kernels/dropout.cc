// dropout, f32: Philox block by block, the same draws and the same rounding as the reference.
#include "ridge/backend/cpu/kernels/kernels.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/random.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kGrain = 1024;  // a multiple of a block of four words

class DropoutKernel : public Kernel {
 public:
  DropoutKernel(const OpCall& call, int threads)
      : rate_(call.number("rate")),
        stream_(static_cast<uint32_t>(call.integer("stream"))),
        samples_(call.inputs[0].rank() == 0 ? 1 : call.inputs[0].dims[0]),
        width_(call.inputs[0].elements() / samples_),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) override {
    const auto* rng = static_cast<const int64_t*>(b.inputs[1]);
    const RandomKey key{static_cast<uint64_t>(rng[0]), stream_, static_cast<uint32_t>(rng[1])};
    const auto* x = static_cast<const float*>(b.inputs[0]);
    auto* y = static_cast<float*>(b.outputs[0]);
    const int64_t chunks = (width_ + kGrain - 1) / kGrain;
    ParallelFor(threads_, samples_ * chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t sample = item / chunks, first = item % chunks * kGrain;
        RunChunk(key, static_cast<uint32_t>(rng[2] + sample), first,
                 std::min(width_, first + kGrain), x + sample * width_, y + sample * width_);
      }
    });
    return Status();
  }

 private:
  void RunChunk(const RandomKey& key, uint32_t sample, int64_t begin, int64_t end, const float* x,
                float* y) const {
    for (int64_t i = begin; i < end; i += 4) {
      const auto words = DrawBlock(key, sample, static_cast<uint64_t>(i / 4));
      for (int64_t k = 0; k < std::min<int64_t>(4, end - i); ++k) {
        const bool keep = double{ToUniform(words[static_cast<size_t>(k)])} >= rate_;
        y[i + k] = keep ? static_cast<float>(x[i + k] / (1 - rate_)) : 0.0F;
      }
    }
  }

  const double rate_;
  const uint32_t stream_;
  const int64_t samples_, width_;
  const int threads_;
};

}  // namespace

const char* OfferDropout(const Question& q, std::vector<KernelChoice>& choices) {
  if (AnyEmpty(q.call)) return refusal::kEmpty;
  if (q.call.inputs[0].dtype != DType::kF32) return refusal::kDType;
  KernelChoice choice = MakeChoice(q, "cpu.dropout", 0.1);
  SetKey(q, choice);
  choices.push_back(std::move(choice));
  return nullptr;
}

Result<std::unique_ptr<Kernel>> CreateDropout(const CpuContext& cpu, const OpDef& op,
                                              const OpCall& call, const KernelChoice&) {
  return std::unique_ptr<Kernel>(std::make_unique<DropoutKernel>(call, ThreadsFor(cpu, op, call)));
}

}  // namespace ridge::cpu
