// position = plane * size of a plane + sum over dimensions of (o * stride - pad + k * dilation) *
// step: a table of the taps' shares is gathered, those of the outputs are broadcast.
#include "ridge/graph/ops/shared/pool_positions.h"

#include <fmt/format.h>

#include <array>

namespace ridge {
namespace {

constexpr int64_t kMostShares = int64_t{1} << 22;  // of one table

using Steps = std::array<int64_t, 3>;  // between neighbours along depth, height, width

Steps StepsOf(const SlidingWindow& window, bool column_major) {
  if (column_major) return {1, window.z().input, window.z().input * window.y().input};
  return {window.y().input * window.x().input, window.x().input, 1};
}

Value TapShares(GraphBuilder& b, const SlidingWindow& window, const Steps& steps) {
  std::vector<int64_t> shares;
  for (int64_t z = 0; z < window.z().kernel; ++z) {
    for (int64_t y = 0; y < window.y().kernel; ++y) {
      for (int64_t x = 0; x < window.x().kernel; ++x) {
        shares.push_back(z * window.z().dilation * steps[0] + y * window.y().dilation * steps[1] +
                         x * window.x().dilation * steps[2]);
      }
    }
  }
  return b.Constant(Tensor::FromInts({window.taps()}, shares));
}

// (o * stride - pad) * step along dimension `at` of y.
Value OutputShares(GraphBuilder& b, const WindowAxis& axis, int64_t step, size_t at, size_t rank) {
  std::vector<int64_t> shares;
  for (int64_t o = 0; o < axis.output; ++o) shares.push_back(axis.InputAt(o, 0) * step);
  Dims dims(rank, 1);
  dims[at] = axis.output;
  return b.Constant(Tensor::FromInts(dims, shares));
}

Value PlaneShares(GraphBuilder& b, const PoolGeometry& g, size_t rank) {
  std::vector<int64_t> shares;
  for (int64_t plane = 0; plane < g.planes(); ++plane) shares.push_back(plane * g.window.inputs());
  Dims dims(rank, 1);
  dims[0] = g.batch;
  dims[1] = g.channels;
  return b.Constant(Tensor::FromInts(dims, shares));
}

Status CheckTable(const char* what, int64_t shares) {
  if (shares <= kMostShares) return Status();
  return Status(ErrorCode::kUnsupported,
                fmt::format("max_pool: positions for {} {}; up to {} are supported", shares, what,
                            kMostShares));
}

// A small file may declare extents of any size.
Status CheckTables(const PoolGeometry& g) {
  RIDGE_RETURN_IF_ERROR(CheckTable("taps of a window", g.window.taps()));
  for (const WindowAxis& axis : g.window.axes)
    RIDGE_RETURN_IF_ERROR(CheckTable("outputs along an axis", axis.output));
  return CheckTable("planes", g.planes());
}

}  // namespace

Value MaxPoolPositions(GraphBuilder& b, Value index, const PoolGeometry& g, bool column_major) {
  if (!b.ok()) return {};
  if (Status good = CheckTables(g); !good.ok()) {
    b.Fail(std::move(good));
    return {};
  }
  const Steps steps = StepsOf(g.window, column_major);
  const size_t spatial = g.window.own().size();
  const Value shares = TapShares(b, g.window, steps);
  Value position = Gather(shares, Cast(index, DType::kI64));
  for (size_t d = 0; d < spatial; ++d) {
    const size_t axis = 3 - spatial + d;
    position = position + OutputShares(b, g.window.axes[axis], steps[axis], d + 2, spatial + 2);
  }
  return position + PlaneShares(b, g, spatial + 2);
}

}  // namespace ridge
