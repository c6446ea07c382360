// dropout of any float: Philox words for a tile, then its elements in double, as the reference has
// it, so draws and rounding are the same bits.
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/f64_tiles.h"
#include "ridge/backend/cpu/kernels/keep_or_drop.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/random.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kWordsOfDraw = 4 * kDrawBlocks;
constexpr int64_t kTile = 32 * kWordsOfDraw;

class DropoutKernel : public HostKernel<DropoutKernel> {
 public:
  DropoutKernel(const OpCall& call, int threads)
      : rate_(call.number("rate")),
        stream_(static_cast<uint32_t>(call.integer("stream"))),
        samples_(call.inputs[0].rank() == 0 ? 1 : call.inputs[0].dims[0]),
        width_(call.inputs[0].elements() / samples_),
        dtype_(call.inputs[0].dtype),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const auto* rng = static_cast<const int64_t*>(b.inputs[1]);
    const RandomKey key{static_cast<uint64_t>(rng[0]), stream_, static_cast<uint32_t>(rng[1])};
    const int64_t tiles = CeilDiv(width_, kTile);
    ParallelFor(threads_, samples_ * tiles, 1, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t sample = item / tiles, first = item % tiles * kTile;
        RunTile(key, static_cast<uint32_t>(rng[2] + sample), sample * width_, first,
                std::min(kTile, width_ - first), b);
      }
    });
    return Status();
  }

 private:
  // Elements [first, first + count) of the sample that begins at `start`.
  void RunTile(const RandomKey& key, uint32_t sample, int64_t start, int64_t first, int64_t count,
               const KernelBuffers& b) const {
    alignas(64) uint32_t words[kTile];
    alignas(64) double values[kTile];
    DrawWords(key, sample, static_cast<uint64_t>(first / 4),
              CeilDiv(count, kWordsOfDraw) * kDrawBlocks, words);
    LoadDoubles(dtype_, b.inputs[0], start + first, values, count);
    KeepOrDrop(values, words, count, rate_, 1 - rate_);
    StoreDoubles(dtype_, values, b.outputs[0], start + first, count);
  }

  const double rate_;
  const uint32_t stream_;
  const int64_t samples_, width_;
  const DType dtype_;
  const int threads_;
};

}  // namespace

KernelDef DropoutKernelDef() {
  return {.name = "cpu.dropout",
          .ops = {"dropout"},
          .efficiency = 0.4,
          .make = MakeKernel<DropoutKernel>};
}

}  // namespace ridge::cpu
