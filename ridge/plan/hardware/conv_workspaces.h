// Workspaces of convolutions on NVIDIA GPUs, as cuDNN answered for GPUs that were not there.
//
// The table is conv_workspaces.txt; bench/cudnn_workspaces.py asks cuDNN and writes it.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/graph/op_def.h"
#include "ridge/graph/ops/shared/conv.h"

namespace ridge {

// Begins KernelChoice::key of what runs in cuDNN on a device that is not here; the question
// follows.
inline constexpr const char* kCudnnKey = "cudnn ";

struct ConvAnswer {
  int64_t bytes = 0;        // of the first engine that gives equal bits in every run
  int64_t first_bytes = 0;  // of cuDNN's first engine, which may not
};

// Asks the library itself about a convolution on one device; none: it gives no answer.
struct ConvReply {
  std::string library;  // "cuDNN 9.19.0"
  ConvAnswer answer;
};
using AskConv = std::function<std::optional<ConvReply>(const std::string& question)>;

struct RecordedAnswer {
  std::string question, device;  // of the catalog: "h200-sxm"
  ConvAnswer answer;
};

// The convolution that cuDNN is asked about for conv and its two gradients; none for other
// operators.
std::optional<ConvGeometry> AskedGeometry(const OpDef& op, const OpCall& call);

// What cuDNN is asked about a convolution or a gradient of one:
//   conv bf16 bf16 256x3x224x224 64x3x7x7 stride 2x2 padding 3x3x3x3 dilation 1x1
// The types of the operands and of the result, x and w of y = conv(x, w), padding before each
// dimension and then after each, and for conv "with bias,relu" where it ends in steps.
// Operands are channels-last, products of f32 are rounded to tf32 where `tf32` holds.
// None where AskedGeometry has none.
std::optional<std::string> ConvQuestion(const OpDef& op, const OpCall& call, bool tf32);

// Whether plugins/cudnn/cudnn_ask.cc reads it: a convolution without other steps than bias and
// relu.
bool CanBeAsked(std::string_view question);

// "cuDNN 9.19.0".
const std::string& ConvLibrary();

// The table's answer; none where cuDNN was not asked or has no engine.
std::optional<ConvAnswer> FindConvAnswer(std::string_view device, const std::string& question);

// The whole table, by question and device.
std::vector<RecordedAnswer> RecordedConvs();

// That of another file of bench/cudnn_workspaces.py, from its text.
std::vector<RecordedAnswer> ReadRecorded(std::string_view text);

}  // namespace ridge
