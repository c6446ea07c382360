// The transforms of Winograd's F(4x4, 3x3) (Winograd, 1980; Lavin and Gray, 2015).
//
// Interpolation points 0, +-sqrt(1/2), +-sqrt(2) and infinity.  With the usual 0, +-1, +-2 the
// entries of the matrices differ more in size and the error is 3 to 4 times as large (measured over
// 64 channels: 1.1e-6 of the largest output against 4.5e-6); the work is the same.
//
// Every transform is one-dimensional, applied to the columns and then to the rows of a tile, for a
// vector of channels.  A patch that leaves the image is copied with zeros first.
#include "ridge/backend/cpu/kernels/winograd_tiles.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/winograd_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/simd_math-inl.h"
#include "ridge/backend/cpu/kernels/winograd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {
using namespace winograd;

// --- one dimension -------------------------------------------------------------------------------

// B^T x
HWY_INLINE void TransformInput(const V (&x)[6], V (&y)[6]) {
  const V even_a = hn::NegMulAdd(K(2.0F), x[2], x[4]), odd_a = hn::NegMulAdd(K(2.0F), x[1], x[3]);
  const V even_b = hn::NegMulAdd(K(0.5F), x[2], x[4]), odd_b = hn::NegMulAdd(K(0.5F), x[1], x[3]);
  y[0] = hn::NegMulAdd(K(2.5F), x[2], hn::Add(x[0], x[4]));
  y[1] = hn::MulAdd(K(kA), odd_a, even_a);
  y[2] = hn::NegMulAdd(K(kA), odd_a, even_a);
  y[3] = hn::MulAdd(K(kB1), odd_b, even_b);
  y[4] = hn::NegMulAdd(K(kB1), odd_b, even_b);
  y[5] = hn::NegMulAdd(K(2.5F), x[3], hn::Add(x[1], x[5]));
}

// A^T m
HWY_INLINE void TransformOutput(const V (&m)[6], V (&y)[4]) {
  const V sum_a = hn::Add(m[1], m[2]), dif_a = hn::Sub(m[1], m[2]);
  const V sum_b = hn::Add(m[3], m[4]), dif_b = hn::Sub(m[3], m[4]);
  y[0] = hn::Add(m[0], hn::Add(sum_a, sum_b));
  y[1] = hn::MulAdd(K(kB1), dif_b, hn::Mul(K(kA), dif_a));
  y[2] = hn::MulAdd(K(2.0F), sum_b, hn::Mul(K(0.5F), sum_a));
  y[3] = hn::MulAdd(K(kB3), dif_b, hn::MulAdd(K(kA3), dif_a, m[5]));
}

// A dy
HWY_INLINE void TransformGradOutput(const V (&y)[4], V (&m)[6]) {
  const V even_a = hn::MulAdd(K(0.5F), y[2], y[0]);
  const V odd_a = hn::MulAdd(K(kA3), y[3], hn::Mul(K(kA), y[1]));
  const V even_b = hn::MulAdd(K(2.0F), y[2], y[0]);
  const V odd_b = hn::MulAdd(K(kB3), y[3], hn::Mul(K(kB1), y[1]));
  m[0] = y[0];
  m[1] = hn::Add(even_a, odd_a);
  m[2] = hn::Sub(even_a, odd_a);
  m[3] = hn::Add(even_b, odd_b);
  m[4] = hn::Sub(even_b, odd_b);
  m[5] = y[3];
}

// --- tiles ---------------------------------------------------------------------------------------

// A run of tiles, one after another.
struct TileWalk {
  int64_t row, column, image;
  const WinogradShape& shape;
  TileWalk(const WinogradShape& s, int64_t tile) : shape(s) {
    column = tile % s.tile_columns();
    row = tile / s.tile_columns() % s.tile_rows();
    image = tile / s.tile_columns() / s.tile_rows();
  }
  void Next() {
    if (++column < shape.tile_columns()) return;
    column = 0;
    if (++row < shape.tile_rows()) return;
    row = 0;
    ++image;
  }
};

// The part of a window of `extent` pixels from `begin` that is inside [0, size).
struct Inside {
  int64_t first, last;
  Inside(int64_t begin, int64_t extent, int64_t size)
      : first(std::clamp<int64_t>(-begin, 0, extent)),
        last(std::clamp<int64_t>(size - begin, first, extent)) {}
  bool all(int64_t extent) const { return first == 0 && last == extent; }
};

// A square of pixels of one block of channels: in place where it is inside the image, else a copy
// with zeros.
template <int64_t kExtent>
struct Square {
  alignas(64) float copy[kExtent * kExtent * kB];

  Grid At(const float* plane, int64_t height, int64_t width, int64_t y, int64_t x) {
    const Inside rows(y, kExtent, height), columns(x, kExtent, width);
    float* corner = const_cast<float*>(plane) + (y * width + x) * kB;
    if (rows.all(kExtent) && columns.all(kExtent)) return {corner, width * kB, kB};
    std::fill_n(copy, kExtent * kExtent * kB, 0.0F);
    for (int64_t i = rows.first; i < rows.last; ++i) {
      const float* from = corner + i * width * kB;
      std::copy(from + columns.first * kB, from + columns.last * kB,
                copy + (i * kExtent + columns.first) * kB);
    }
    return {copy, kExtent * kB, kB};
  }
};

void Input(const WinogradShape& s, const float* x, const TileRun& tiles, float* v) {
  Square<kP> square;
  const int64_t blocks = s.inner_blocks(), plane = s.in_height * s.in_width * kB;
  const int64_t stride = FrequencyStride(blocks, tiles.rows);
  for (int64_t block = 0; block < blocks; ++block) {
    TileWalk tile(s, tiles.first);
    for (int64_t t = 0; t < tiles.count; ++t, tile.Next()) {
      const Grid from = square.At(x + (tile.image * blocks + block) * plane, s.in_height,
                                  s.in_width, tile.row * kT - s.pad_y, tile.column * kT - s.pad_x);
      ForEachVector([&](int64_t lane) HWY_ATTR {
        const Grid to{v + (block * tiles.rows + t) * kB + lane, kP * stride, stride};
        Transform<6, 6>({from.data + lane, from.row, from.column}, to,
                        [](const V(&in)[6], V(&out)[6]) HWY_ATTR { TransformInput(in, out); });
      });
    }
  }
}

void GradOutput(const WinogradShape& s, const float* dy, const TileRun& tiles, int64_t first_block,
                int64_t blocks, float* m, float* bias_sums) {
  Square<kT> square;
  const D d;
  const int64_t plane = s.out_height * s.out_width * kB;
  const int64_t stride = FrequencyStride(blocks, tiles.rows);
  for (int64_t block = 0; block < blocks; ++block) {
    alignas(64) float sums[kB] = {};  // of these tiles only, so that long sums stay exact
    TileWalk tile(s, tiles.first);
    for (int64_t t = 0; t < tiles.count; ++t, tile.Next()) {
      const float* image = dy + (tile.image * s.outer_blocks() + first_block + block) * plane;
      const Grid from =
          square.At(image, s.out_height, s.out_width, tile.row * kT, tile.column * kT);
      ForEachVector([&](int64_t lane) HWY_ATTR {
        const Grid in{from.data + lane, from.row, from.column};
        const Grid to{m + (block * tiles.rows + t) * kB + lane, kP * stride, stride};
        V sum = hn::Zero(d);
        for (int i = 0; i < kT; ++i) {
          sum = hn::Add(sum, hn::Add(hn::Add(in.Get(i, 0), in.Get(i, 1)),
                                     hn::Add(in.Get(i, 2), in.Get(i, 3))));
        }
        hn::Store(hn::Add(hn::Load(d, sums + lane), sum), d, sums + lane);
        Transform<4, 6>(in, to,
                        [](const V(&y)[4], V(&out)[6]) HWY_ATTR { TransformGradOutput(y, out); });
      });
    }
    for (int64_t c = 0; c < kB; ++c) bias_sums[block * kB + c] += sums[c];
  }
}

// --- the epilogue --------------------------------------------------------------------------------

HWY_INLINE V Gelu(V x) {
  return hn::Mul(hn::Mul(K(0.5F), x), hn::Add(K(1.0F), Erf(hn::Mul(K(0.70710678F), x))));
}

HWY_INLINE V ApplyStep(WinogradStep step, V y) {
  switch (step) {
    case WinogradStep::kRelu:
      return hn::Max(hn::Zero(D()), y);
    case WinogradStep::kGelu:
      return Gelu(y);
    case WinogradStep::kSilu:
      return hn::Mul(y, Sigmoid(y));
    case WinogradStep::kTanh:
      return SafeTanh(y);
    case WinogradStep::kSigmoid:
      return Sigmoid(y);
    case WinogradStep::kAdd:
      break;
  }
  return y;
}

// One pixel's block: `at` is its place in the output and in the extras.
HWY_INLINE void FinishPixel(const WinogradEpilogue& epilogue, const float* from, int64_t at,
                            float* y) {
  const D d;
  ForEachVector([&](int64_t lane) HWY_ATTR {
    V value = hn::Load(d, from + lane);
    size_t extra = 0;
    for (const WinogradStep step : epilogue.steps) {
      if (step == WinogradStep::kAdd) {
        value = hn::Add(value, hn::LoadU(d, epilogue.extras[extra++] + at + lane));
      } else {
        value = ApplyStep(step, value);
      }
    }
    hn::StoreU(value, d, y + at + lane);
  });
}

// Of one tile of one block: m's tile to 4x4 vectors, the bias added.
HWY_INLINE void OutputTile(const float* m, int64_t stride, const float* bias, bool relu,
                           const Grid& to) {
  const D d;
  ForEachVector([&](int64_t lane) HWY_ATTR {
    const V b = hn::LoadU(d, bias + lane);
    const V least = relu ? hn::Zero(d) : K(-std::numeric_limits<float>::infinity());
    const Grid from{const_cast<float*>(m) + lane, kP * stride, stride};
    V half[4][6];
#pragma GCC unroll 6
    for (int j = 0; j < 6; ++j) {
      V in[6], out[4];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) in[i] = from.Get(i, j);
      TransformOutput(in, out);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) half[i][j] = out[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      V out[4];
      TransformOutput(half[i], out);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        hn::StoreU(hn::Max(least, hn::Add(out[j], b)), d,
                   to.data + i * to.row + j * to.column + lane);
      }
    }
  });
}

void Output(const WinogradShape& s, const float* m, const TileRun& tiles, int64_t first_block,
            int64_t blocks, const WinogradEpilogue& epilogue, float* y) {
  alignas(64) float copy[kT * kT * kB];
  const int64_t stride = FrequencyStride(blocks, tiles.rows);
  const int64_t plane = s.out_height * s.out_width * kB;
  const bool plain = epilogue.steps.empty();
  const bool relu = epilogue.steps.size() == 1 && epilogue.steps[0] == WinogradStep::kRelu;
  for (int64_t block = 0; block < blocks; ++block) {
    const float* bias = epilogue.bias + (first_block + block) * kB;
    TileWalk tile(s, tiles.first);
    for (int64_t t = 0; t < tiles.count; ++t, tile.Next()) {
      const float* from = m + (block * tiles.rows + t) * kB;
      const int64_t height = std::min(kT, s.out_height - tile.row * kT);
      const int64_t width = std::min(kT, s.out_width - tile.column * kT);
      const int64_t corner = (tile.image * s.outer_blocks() + first_block + block) * plane +
                             (tile.row * s.out_width + tile.column) * kT * kB;
      if (height == kT && width == kT && (plain || relu)) {
        OutputTile(from, stride, bias, relu, {y + corner, s.out_width * kB, kB});
        continue;
      }
      OutputTile(from, stride, bias, /*relu=*/false, {copy, kT * kB, kB});
      for (int64_t i = 0; i < height; ++i) {
        for (int64_t j = 0; j < width; ++j)
          FinishPixel(epilogue, copy + (i * kT + j) * kB, corner + (i * s.out_width + j) * kB, y);
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(Input);
HWY_EXPORT(Output);
HWY_EXPORT(GradOutput);

void WinogradInput(const WinogradShape& shape, const float* x, const TileRun& tiles, float* v) {
  HWY_DYNAMIC_DISPATCH(Input)(shape, x, tiles, v);
}

void WinogradOutput(const WinogradShape& shape, const float* m, const TileRun& tiles,
                    int64_t first_block, int64_t blocks, const WinogradEpilogue& epilogue,
                    float* y) {
  HWY_DYNAMIC_DISPATCH(Output)
  (shape, m, tiles, first_block, blocks, epilogue, y);
}

void WinogradGradOutput(const WinogradShape& shape, const float* dy, const TileRun& tiles,
                        int64_t first_block, int64_t blocks, float* m, float* bias_sums) {
  HWY_DYNAMIC_DISPATCH(GradOutput)
  (shape, dy, tiles, first_block, blocks, m, bias_sums);
}

}  // namespace ridge::cpu
#endif
