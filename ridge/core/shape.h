// Dims and TensorType: the extents of a tensor, outermost dimension first, and its element type.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/core/dtype.h"
#include "ridge/core/status.h"

namespace ridge {

using Dims = std::vector<int64_t>;  // {} is a scalar

// Product of the extents; 1 for a scalar, 0 when any extent is 0.
// REQUIRES: CheckDims() passed: shapes come from files, so they are checked once, where they enter.
int64_t ElementCount(const Dims& dims);

// Refuses negative extents, rank over 16 and products over 2^48 elements.
Status CheckDims(const Dims& dims);

// Elements between neighbours along each dimension, row-major.
Dims RowMajorStrides(const Dims& dims);

struct TensorType {
  DType dtype = DType::kF32;
  Dims dims;  // e.g. {B, T, C}

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t elements() const { return ElementCount(dims); }
  int64_t bytes() const { return elements() * BytesPerElement(dtype); }
  bool operator==(const TensorType&) const = default;
};

std::string DimsToString(const Dims& dims);        // "[8,1024]"
std::string TypeToString(const TensorType& type);  // "f32[8,1024]"

// The numpy rule: dimensions are aligned at the right, 1 stretches.
// Fails with kInvalidModel; the message names both shapes.
Result<Dims> BroadcastDims(const Dims& a, const Dims& b);

// The index in [0, rank) of `axis` in [-rank, rank); fails otherwise, naming `where`.
Result<int> NormalizeAxis(int64_t axis, int rank, const std::string& where);

}  // namespace ridge
