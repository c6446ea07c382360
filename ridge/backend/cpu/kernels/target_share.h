// How threads share a target that indices write to: each place has one owner, who meets all indices
// in order, so what two of them name is combined the same way at any number of threads.
#pragma once
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/axis_view.h"

namespace ridge::cpu {

struct TargetShare {
  Range rows, columns;  // along the axis, and inside it
};

inline TargetShare ShareOfTarget(const AxisView& view, int threads, int part) {
  if (view.inner >= 16 * threads)
    return {{0, view.extent}, PartOf(view.inner, threads, part, /*grain=*/16)};
  return {PartOf(view.extent, threads, part), {0, view.inner}};
}

}  // namespace ridge::cpu
