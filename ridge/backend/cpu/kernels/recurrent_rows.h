// The pointwise part of a step of lstm, gru and rnn, f32, vectorized: single rows (samples).
//
// Rows of gates hold blocks of `hidden` floats; the offsets of the blocks are given.
#pragma once
#include <cstdint>

namespace ridge::cpu {

// Offsets of the blocks i, f, g, o.
struct LstmBlocks {
  int64_t hidden = 0;
  int64_t i = 0, f = 0, g = 0, o = 0;
};

// sums = projected + inner; activated may be projected.
void LstmRow(const LstmBlocks& at, const float* projected, const float* inner, const float* c,
             float* activated, float* cell, float* y);

// dh: from dy and the next step together with `handed`, which may be nullptr; dcell may be nullptr.
// dc: from the next step; becomes what the step before gets.  d may be activated.
struct LstmGradRowArgs {
  const float *activated, *cell, *before, *dy, *handed, *dcell;
  float *dc, *d;
};
void LstmGradRow(const LstmBlocks& at, const LstmGradRowArgs& row);

// Offsets of the blocks r, z, n in projected, inner and their gradients; in `activated` r, z, n and
// what r multiplies lie in this order.
struct GruBlocks {
  int64_t hidden = 0;
  int64_t r = 0, z = 0, n = 0;
};

// bias may be nullptr.
void GruRow(const GruBlocks& at, const float* projected, const float* inner, const float* bias,
            const float* before, float* activated, float* y);

// dh = dy + handed + direct; direct becomes what the step before gets beside the product.
struct GruGradRowArgs {
  const float *activated, *before, *dy, *handed;
  float *direct, *dprojected, *dinner;
};
void GruGradRow(const GruBlocks& at, const GruGradRowArgs& row);

// y = tanh(projected + inner), or relu; y may be projected.
void RnnRow(int64_t hidden, bool relu, const float* projected, const float* inner, float* y);
// d = (dy + handed) * slope(y); handed may be nullptr, d may be dy.
void RnnGradRow(int64_t hidden, bool relu, const float* y, const float* dy, const float* handed,
                float* d);

}  // namespace ridge::cpu
