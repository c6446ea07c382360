// A plane at a time is widened into the workspace, where it stays in cache while its rows are
// pooled as f32; each finished row is rounded on its way out.  Measured for the pool of ResNet-50:
// see docs/design/0010-bf16.md.
//
// Known weakness: a plane of 16 channels leaves a cache of 1 MB from about 128x128 pixels on.
#include "ridge/backend/cpu/kernels/pool_bf16.h"

#include <string_view>

#include "ridge/backend/cpu/kernels/tile_program.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

// What is read and written, by plane.
struct Planes {
  int64_t from, to;  // elements of a plane
  int64_t rows, row;
};

Planes PlanesOf(const PoolShape& s, bool gradient) {
  if (gradient) return {s.output_plane(), s.input_plane(), s.y.axis.input, s.input_row()};
  return {s.input_plane(), s.output_plane(), s.y.axis.output, s.output_row()};
}

int64_t ScratchFloats(const Planes& p) { return RoundUpFloats(p.from) + RoundUpFloats(p.row); }

class PoolBF16Kernel : public Kernel {
 public:
  PoolBF16Kernel(PoolShape shape, std::vector<float> divisors, bool max, bool gradient, int threads)
      : shape_(std::move(shape)),
        divisors_(std::move(divisors)),
        planes_(PlanesOf(shape_, gradient)),
        max_(max),
        gradient_(gradient),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) override {
    const auto* from = static_cast<const uint16_t*>(b.inputs[max_ && gradient_ ? 1 : 0]);
    auto* to = static_cast<uint16_t*>(b.outputs[0]);
    ForEachPart(threads_, [&](int part) {
      float* plane = static_cast<float*>(b.workspace) + part * ScratchFloats(planes_);
      float* row = plane + RoundUpFloats(planes_.from);
      const Range own = PartOf(shape_.planes, threads_, part);
      for (int64_t p = own.begin; p < own.end; ++p) {
        WidenRow(from + p * planes_.from, planes_.from, plane);
        for (int64_t r = 0; r < planes_.rows; ++r) {
          PoolRow(b, p, plane, r, row);
          RoundRow(row, planes_.row, to + p * planes_.to + r * planes_.row);
        }
      }
    });
    return Status();
  }

 private:
  void PoolRow(const KernelBuffers& b, int64_t p, const float* plane, int64_t r, float* row) const {
    const int64_t index_bytes = shape_.wide_index ? 4 : 1;
    const int64_t index = p * shape_.output_plane() * index_bytes;
    if (max_ && gradient_) {
      MaxPoolGradRow(shape_, static_cast<const std::byte*>(b.inputs[0]) + index, plane, r, row);
    } else if (max_) {
      auto* winners = static_cast<std::byte*>(b.outputs[1]) + index;
      MaxPoolRow(shape_, plane, r, row, winners + r * planes_.row * index_bytes);
    } else if (gradient_) {
      AvgPoolGradRow(shape_, divisors_.data(), plane, r, row);
    } else {
      AvgPoolRow(shape_, divisors_.data(), plane, r, row);
    }
  }

  const PoolShape shape_;
  const std::vector<float> divisors_;  // [OH, OW]
  const Planes planes_;
  const bool max_, gradient_;
  const int threads_;
};

bool IsGradient(const OpDef& op) { return std::string_view(op.name).ends_with("_grad"); }

}  // namespace

int64_t PoolBF16WorkspaceBytes(const PoolShape& shape, int threads) {
  const int64_t floats = std::max(ScratchFloats(PlanesOf(shape, /*gradient=*/false)),
                                  ScratchFloats(PlanesOf(shape, /*gradient=*/true)));
  return threads * floats * 4;
}

std::unique_ptr<Kernel> MakePoolBF16(const OpDef& op, PoolShape shape, std::vector<float> divisors,
                                     int threads) {
  const bool max = std::string_view(op.name).starts_with("max");
  return std::make_unique<PoolBF16Kernel>(std::move(shape), std::move(divisors), max,
                                          IsGradient(op), threads);
}

}  // namespace ridge::cpu
