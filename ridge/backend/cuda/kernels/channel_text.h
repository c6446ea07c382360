// Texts of normalization by channels: x [B,C,...] as [outer, C, inner].
#pragma once
#include <string>

#include "ridge/backend/cuda/kernels/reduce_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/axis_view.h"

namespace ridge::cuda {

// The parameters of a function and what a launch passes for them.
struct ChannelOperands {
  std::string parameters = {};
  std::vector<Argument> arguments = {};

  void Add(const std::string& declaration, Argument argument);
  void AddInput(const OpCall& call, size_t i, const char* name);
  void AddOutput(const OpCall& call, size_t o, const char* name);
};

struct ChannelShape {
  AxisView view;
  ReduceView reduction;  // over all but the channels
  ReduceTile tile;       // of a pass that reduces them
  int64_t elements = 0;
  int pack = 1;  // elements that a thread of a pass over all of them moves at once

  int64_t channels() const { return view.extent; }
  int64_t elements_per_channel() const { return view.outer * view.inner; }
  // What tile.Values() has, and first, term, Index, channels, count (as an R, at least 1), T.
  TextValues Values(DType dtype) const;
};
ChannelShape ShapeOfChannels(const TensorType& x);

// Function `name`: a pass over all elements, number `e` of channel `c`.  `load` declares packs that
// are read at `group`; `value` are statements that store number `k` of the pack `q`, which goes to
// `out`.
std::string ElementsText(const ChannelShape& shape, DType dtype, const std::string& name,
                         const std::string& parameters, const std::string& load,
                         const std::string& value, const std::string& out);
int64_t ElementsBlocks(const ChannelShape& shape);

}  // namespace ridge::cuda
