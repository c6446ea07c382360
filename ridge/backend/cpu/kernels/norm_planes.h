// The loops of batch normalization over planes: runs of memory in which element
// i belongs to lane i % 16.
//
// In blocks of 16 channels a lane is a channel; in row-major a plane is one
// channel and all lanes are its; in blocks of 8 two lanes share a channel. What
// lanes add up to is the caller's care. f32 data, sums in f32 over at most 256
// elements of a lane and in double beyond.
#pragma once
#include <cstdint>

namespace ridge::cpu {

inline constexpr int64_t kNormLanes = 16;

// Of the elements of each lane; m2 is the sum of squared distances from the
// mean.
struct LaneMoments {
  double count[kNormLanes] = {};
  double mean[kNormLanes] = {};
  double m2[kNormLanes] = {};
};

// y = (x - mean) * slope + shift.
struct LaneNorm {
  float mean[kNormLanes] = {};
  float slope[kNormLanes] = {};
  float shift[kNormLanes] = {};
};

// sum(g) and sum(g * (x - mean)).
struct LaneGradSums {
  double g[kNormLanes] = {};
  double gx[kNormLanes] = {};
};

// dx = slope * (g - mean_g - (x - mean) * mean_gx).
struct LaneGrad {
  float mean_g[kNormLanes] = {};
  float mean_gx[kNormLanes] = {};
};

// Adds the elements [0, count) of x to `moments`.
void AddMoments(const float* x, int64_t count, LaneMoments& moments);

// `stream` writes past the caches: for results that are larger than they are, aligned to 64 bytes
// and not written over an operand.

// y, plus `extra` where it is not null, and max(., 0) with `relu`; NaN stays
// NaN.  y may be x or extra.
void NormalizePlane(const float* x, const float* extra, int64_t count, const LaneNorm& norm,
                    bool relu, bool stream, float* y);

// g is dy, and with `relu` 0 where NormalizePlane gives no more than 0.
void AddGradSums(const float* x, const float* dy, int64_t count, const LaneNorm& norm, bool relu,
                 LaneGradSums& sums);
// dx may be x or dy.
void NormGradPlane(const float* x, const float* dy, int64_t count, const LaneNorm& norm,
                   const LaneGrad& grad, bool relu, bool stream, float* dx);

}  // namespace ridge::cpu
