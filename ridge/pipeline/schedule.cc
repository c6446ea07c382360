#include "ridge/pipeline/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ridge {
namespace {

constexpr int kUsualChunks = 2;
constexpr int kMostChunks = 64;
constexpr char kInterleavedName[] = "interleaved";

using Order = ScheduleKind::Order;
using Ops = std::vector<Operation>;

constexpr std::pair<Order, const char*> kNames[] = {{Order::kGpipe, "gpipe"},
                                                    {Order::k1f1b, "1f1b"},
                                                    {Order::kInterleaved, kInterleavedName},
                                                    {Order::kZeroBubble, "zero-bubble"}};

const char* NameOf(Order order) {
  for (const auto& [known, name] : kNames)
    if (known == order) return name;
  return "";
}

Ops GpipeOps(int device, int micros) {
  Ops ops;
  for (int i = 0; i < micros; ++i) ops.push_back({PipelineOp::kForward, device, i});
  for (int i = 0; i < micros; ++i) ops.push_back({PipelineOp::kBackward, device, i});
  return ops;
}

// `weights_behind` >= 0: the gradients of weights come so many micro batches behind the backward.
Ops OneForwardOneBackward(int device, int devices, int micros, int weights_behind) {
  Ops ops;
  const auto weights = [&](int i) {
    if (weights_behind >= 0 && i >= 0 && i < micros)
      ops.push_back({PipelineOp::kWeights, device, i});
  };
  const int before = std::min(devices - device - 1, micros);
  for (int i = 0; i < before; ++i) ops.push_back({PipelineOp::kForward, device, i});
  for (int i = 0; i < micros; ++i) {
    if (before + i < micros) ops.push_back({PipelineOp::kForward, device, before + i});
    ops.push_back({PipelineOp::kBackward, device, i});
    weights(i - weights_behind);
  }
  for (int i = micros; i < micros + weights_behind; ++i) weights(i - weights_behind);
  return ops;
}

// Forward k of a device: groups of p micro batches go through its chunks one after the other.
// Backwards go through the chunks in the opposite order.
Operation InterleavedOp(PipelineOp op, int k, int device, int devices, int chunks_a_device) {
  const int group = devices * chunks_a_device;
  const int turn = k % group / devices;
  const int own = op == PipelineOp::kForward ? turn : chunks_a_device - 1 - turn;
  return {op, own * devices + device, k / group * devices + k % devices};
}

Ops InterleavedOps(int device, int devices, int micros, int chunks_a_device) {
  const int all = micros * chunks_a_device;
  const int before = std::min(all, (devices - device - 1) * 2 + (chunks_a_device - 1) * devices);
  Ops ops;
  const auto add = [&](PipelineOp op, int k) {
    ops.push_back(InterleavedOp(op, k, device, devices, chunks_a_device));
  };
  for (int k = 0; k < before; ++k) add(PipelineOp::kForward, k);
  for (int k = 0; k < all; ++k) {
    if (before + k < all) add(PipelineOp::kForward, before + k);
    add(PipelineOp::kBackward, k);
  }
  return ops;
}

Status CheckCounts(const ScheduleKind& kind, int devices, int micros) {
  if (devices < 1 || micros < 1 || kind.chunks_a_device < 1) {
    return InvalidArgument(fmt::format(
        "schedule {}: {} devices, {} micro batches; there must be 1 of each. hint: --mesh p=2 "
        "--accumulate 4",
        ScheduleKindText(kind), devices, micros));
  }
  if (kind.order == Order::kInterleaved && micros % devices != 0) {
    return InvalidArgument(
        fmt::format("schedule {}: {} micro batches on {} devices; they must be a multiple. hint: "
                    "--accumulate {}",
                    ScheduleKindText(kind), micros, devices, (micros / devices + 1) * devices));
  }
  return Status();
}

}  // namespace

int PeerChunk(const Operation& operation) {
  switch (operation.op) {
    case PipelineOp::kSendForward:
    case PipelineOp::kReceiveBackward:
      return operation.chunk + 1;
    case PipelineOp::kReceiveForward:
    case PipelineOp::kSendBackward:
      return operation.chunk - 1;
    default:
      return operation.chunk;
  }
}

std::string OperationText(const Operation& operation, int chunks_a_device) {
  static constexpr const char* kTexts[] = {"F", "B", "W", "sF", "rF", "sB", "rB"};
  std::string text =
      fmt::format("{}{}", kTexts[static_cast<size_t>(operation.op)], operation.micro);
  if (chunks_a_device > 1) text += fmt::format("@{}", operation.chunk);
  return text;
}

std::string ScheduleText(const PipelineSchedule& schedule) {
  std::string text;
  for (size_t d = 0; d < schedule.ops.size(); ++d) {
    text += fmt::format("{}:", d);
    for (const Operation& operation : schedule.ops[d])
      text += " " + OperationText(operation, schedule.chunks / schedule.devices);
    text += "\n";
  }
  return text;
}

Result<ScheduleKind> ParseScheduleKind(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  ScheduleKind kind;
  bool known = false;
  for (const auto& [order, name] : kNames) {
    if (text.substr(0, colon) != name) continue;
    kind.order = order;
    known = true;
  }
  const bool interleaved = kind.order == Order::kInterleaved;
  if (interleaved) kind.chunks_a_device = kUsualChunks;
  if (known && colon < text.size()) {
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, kind.chunks_a_device);
    known = interleaved && error == std::errc() && rest == end && kind.chunks_a_device >= 2 &&
            kind.chunks_a_device <= kMostChunks;
  }
  if (known) return kind;
  return InvalidArgument(fmt::format(
      "--pipeline is '{}'; it must be gpipe, 1f1b, interleaved:CHUNKS (2 to {} a device) or "
      "zero-bubble. hint: --pipeline 1f1b",
      text, kMostChunks));
}

std::string ScheduleKindText(const ScheduleKind& kind) {
  if (kind.order == Order::kInterleaved)
    return fmt::format("{}:{}", kInterleavedName, kind.chunks_a_device);
  return NameOf(kind.order);
}

Result<PipelineSchedule> MakeSchedule(const ScheduleKind& kind, int devices, int micros) {
  RIDGE_RETURN_IF_ERROR(CheckCounts(kind, devices, micros));
  PipelineSchedule schedule;
  schedule.name = ScheduleKindText(kind);
  schedule.devices = devices;
  schedule.chunks = devices * kind.chunks_a_device;
  schedule.micros = micros;
  schedule.separates_weights = kind.order == Order::kZeroBubble;
  for (int d = 0; d < devices; ++d) {
    if (kind.order == Order::kGpipe) {
      schedule.ops.push_back(GpipeOps(d, micros));
    } else if (kind.order == Order::kInterleaved) {
      schedule.ops.push_back(InterleavedOps(d, devices, micros, kind.chunks_a_device));
    } else {
      schedule.ops.push_back(OneForwardOneBackward(
          d, devices, micros, /*weights_behind=*/schedule.separates_weights ? d : -1));
    }
  }
  InsertMessages(schedule);
  return schedule;
}

void InsertMessages(PipelineSchedule& schedule) {
  const auto crosses = [&](int from, int to) {
    return to >= 0 && to < schedule.chunks && schedule.DeviceOf(from) != schedule.DeviceOf(to);
  };
  for (Ops& ops : schedule.ops) {
    Ops with;
    for (const Operation& o : ops) {
      const bool forward = o.op == PipelineOp::kForward;
      const int step = forward ? 1 : -1;
      const bool moves = o.op != PipelineOp::kWeights;
      if (moves && crosses(o.chunk, o.chunk - step)) {
        with.push_back({forward ? PipelineOp::kReceiveForward : PipelineOp::kReceiveBackward,
                        o.chunk, o.micro});
      }
      with.push_back(o);
      if (moves && crosses(o.chunk, o.chunk + step)) {
        with.push_back(
            {forward ? PipelineOp::kSendForward : PipelineOp::kSendBackward, o.chunk, o.micro});
      }
    }
    ops = std::move(with);
  }
}

}  // namespace ridge
