// Texts of normalization by channels: x [B,C,...] as [outer, C, inner]; in channels-last inner
// is 1.
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
  // A thread's packs are all of the same channels.
  bool in_columns() const { return view.inner == 1; }
  // What tile.Values() has, and first, term, Index, channels, count (as an R, at least 1), T.
  TextValues Values(DType dtype) const;
};
ChannelShape ShapeOfChannels(const TensorType& x, LayoutId layout);

// A pass over all elements.
struct ElementsPass {
  std::string name = {};                 // of the function
  std::vector<std::string> inputs = {};  // parameters: tensors of x's type
  std::string channel = {};              // a Channel, of the channel with the number c
  std::string value = {};                // statements that store element k of the pack q, from
                                         // that of p_INPUT[j], and its `channel`
  std::string out = {};                  // the parameter that q goes to
};
// Appends it and its launch.  REQUIRES: a type Channel in the text.
void AppendElements(const ChannelShape& shape, DType dtype, const ChannelOperands& operands,
                    const ElementsPass& pass, KernelText& text);

}  // namespace ridge::cuda
