// The geometry of a pool as text: types AxisZ, AxisY and AxisX, whose extents are numbers.
#pragma once
#include <string>

#include "ridge/graph/ops/shared/pool.h"

namespace ridge::cuda {

// Also declares Index, an integer type that counts elements and positions:
//
//   AxisX::kInput, kOutput, kKernel        extents of x and y, taps
//   AxisX::At(o, k)                        position of tap k of output o
//   AxisX::FirstTap(o), EndTap(o)          the taps inside x
//   AxisX::Taps(o)                         those that avg_pool counts
//   AxisX::FirstOutput(i), EndOutput(i)    the outputs whose windows may hold position i
//   AxisX::TapAt(o, i)                     the tap of output o at position i, or -1
//
// `counts_padding`: of avg_pool.
std::string PoolAxesText(const PoolGeometry& geometry, bool counts_padding);

// Channels that a thread moves at once where they are stored last: 16 bytes of them, or fewer.
int64_t ChannelPack(int64_t channels, DType dtype);

}  // namespace ridge::cuda
