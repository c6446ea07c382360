// Layer and RMS normalization of single rows of f32, vectorized; a row stays in cache between its
// passes.  What is uint16_t is bf16.
#pragma once
#include <cstdint>

namespace ridge::cpu {

// y = (x - mean) * rstd * scale + shift; scale and shift may be nullptr.
void LayerNormRow(const float* x, int64_t width, double epsilon, const float* scale,
                  const float* shift, float* y, float* mean, float* rstd);
void LayerNormRow(const float* x, int64_t width, double epsilon, const float* scale,
                  const float* shift, uint16_t* y, float* mean, float* rstd);

// dx = rstd * (dn - mean(dn) - n * mean(dn * n)) with n = (x - mean) * rstd, dn = dy * scale.
// Adds dy * n to dscale and dy to dshift when they are not nullptr.
void LayerNormGradRow(const float* x, const float* dy, int64_t width, float mean, float rstd,
                      const float* scale, float* dx, float* dscale, float* dshift);
void LayerNormGradRow(const float* x, const uint16_t* dy, int64_t width, float mean, float rstd,
                      const float* scale, float* dx, float* dscale, float* dshift);

// y = x * rstd * scale; scale may be nullptr.
void RmsNormRow(const float* x, int64_t width, double epsilon, const float* scale, float* y,
                float* rstd);

// dx = rstd * (dn - n * mean(dn * n)) with n = x * rstd, dn = dy * scale.  Adds dy * n to dscale
// when it is not nullptr.
void RmsNormGradRow(const float* x, const float* dy, int64_t width, float rstd, const float* scale,
                    float* dx, float* dscale);

}  // namespace ridge::cpu
