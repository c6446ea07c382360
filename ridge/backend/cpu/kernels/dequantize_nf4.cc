// dequantize_nf4: the 16 numbers that a block can hold are rounded once, then looked up.
#include <algorithm>

#include "ridge/backend/cpu/kernels/for_dtype.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/nf4.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kGrainBlocks = 64;

template <typename T>
class DequantizeNf4Kernel : public HostKernel<DequantizeNf4Kernel<T>> {
 public:
  DequantizeNf4Kernel(const OpCall& call, int threads)
      : count_(call.outputs[0].elements()), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const auto* codes = static_cast<const uint8_t*>(b.inputs[0]);
    const auto* scales = static_cast<const uint16_t*>(b.inputs[1]);
    auto* y = static_cast<T*>(b.outputs[0]);
    ParallelFor(threads_, Nf4ScaleCount(count_), kGrainBlocks, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * kNf4Block;
        RunBlock(codes + first / 2, scales[block], std::min(kNf4Block, count_ - first), y + first);
      }
    });
    return Status();
  }

 private:
  static void RunBlock(const uint8_t* codes, uint16_t scale, int64_t count, T* y) {
    T numbers[16];
    MakeNumbers(BF16ToFloat(scale), numbers);
    const int64_t pairs = count / 2;
    for (int64_t p = 0; p < pairs; ++p) {
      y[2 * p] = numbers[codes[p] >> 4];
      y[2 * p + 1] = numbers[codes[p] & 15];
    }
    if (count % 2 != 0) y[count - 1] = numbers[codes[pairs] >> 4];
  }

  static void MakeNumbers(float scale, T (&numbers)[16]) {
    double products[16];
    for (size_t i = 0; i < 16; ++i) products[i] = double{Nf4Values()[i]} * double{scale};
    ConvertFromDouble(ElementOf<T>::kDType, products, numbers, 16);
  }

  const int64_t count_;
  const int threads_;
};

using Floats = Elements<double, float, F16, BF16>;

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice&) {
  return Floats::Call(q.call.outputs[0].dtype, [&]<typename T>() {
    return std::unique_ptr<Kernel>(std::make_unique<DequantizeNf4Kernel<T>>(q.call, q.threads()));
  });
}

}  // namespace

KernelDef DequantizeNf4KernelDef() {
  return {.name = "cpu.dequantize_nf4",
          .ops = {"dequantize_nf4"},
          .dtypes = {DType::kBF16},
          .typed_by = 1,
          .efficiency = 0.5,
          .make = Make};
}

}  // namespace ridge::cpu
