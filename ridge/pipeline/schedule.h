// PipelineSchedule: what each device of a pipeline does in one update, in order, as data.
//
// A model is cut into chunks; device d of p has the chunks d, d + p, d + 2p, ..  An update has
// micro batches 0, 1, ..  A chunk sends what the next chunk's forward reads (activations), and what
// the previous chunk's backward reads (gradients); between chunks of one device nothing is sent.
//
//   F2      forward of micro batch 2         B2   its backward
//   W2      its gradients of weights, where the schedule separates them from the backward
//   sF2 rF2 sends, receives its activations  sB2, rB2   gradients
//   F2@5    the same of chunk 5, where a device has several
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

enum class PipelineOp : uint8_t {
  kForward,
  kBackward,
  kWeights,
  kSendForward,  // of a send the chunk is the one that sends, of a receive the one that receives
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
};

struct Operation {
  PipelineOp op = PipelineOp::kForward;
  int chunk = 0;
  int micro = 0;

  bool is_compute() const { return op <= PipelineOp::kWeights; }
  bool is_send() const { return op == PipelineOp::kSendForward || op == PipelineOp::kSendBackward; }
  auto operator<=>(const Operation&) const = default;
};

struct PipelineSchedule {
  std::string name;  // "1f1b"
  int devices = 1;
  int chunks = 1;  // a multiple of the devices
  int micros = 1;
  bool separates_weights = false;           // has kWeights
  std::vector<std::vector<Operation>> ops;  // by device

  int DeviceOf(int chunk) const { return chunk % devices; }
  bool operator==(const PipelineSchedule&) const = default;
};

// The chunk at the other end of a send or receive.
int PeerChunk(const Operation& operation);

// "sF2@5"; `chunks_a_device` > 1 shows the chunk.
std::string OperationText(const Operation& operation, int chunks_a_device);
// A device a line: "0: F0 sF0 F1 sF1 rB0 B0 rB1 B1".
std::string ScheduleText(const PipelineSchedule& schedule);

// ---- Generators.  Forwards, backwards and gradients of weights of a chunk are in the order of the
// micro batches in all of them, so the sums over micro batches have the same bits in all of them.

// What a job may ask for.
struct ScheduleKind {
  enum class Order : uint8_t { kGpipe, k1f1b, kInterleaved, kZeroBubble };
  Order order = Order::k1f1b;
  int chunks_a_device = 1;  // > 1: interleaved only

  bool operator==(const ScheduleKind&) const = default;
};

// "gpipe", "1f1b", "interleaved:2" (chunks a device; 2 where none is written), "zero-bubble".
// Fails with kInvalidArgument.
Result<ScheduleKind> ParseScheduleKind(const std::string& text);
std::string ScheduleKindText(const ScheduleKind& kind);

// gpipe        all forwards, then all backwards (Huang et al., 2019)
// 1f1b         device d keeps at most p - d micro batches (Narayanan et al., PipeDream, 2019)
// interleaved  the same with several chunks a device (Narayanan et al., Megatron-LM, 2021)
// zero-bubble  1f1b with gradients of weights in what would be idle: ZB-H1 (Qi et al., 2023);
//              a device keeps at most p micro batches
//
// Fails with kInvalidArgument when there is less than 1 of something, and for interleaved when the
// devices do not divide the micro batches.
Result<PipelineSchedule> MakeSchedule(const ScheduleKind& kind, int devices, int micros);

// Inserts the sends and receives: a receive before its reader, a send behind its writer.
// REQUIRES: `schedule.ops` has none.
void InsertMessages(PipelineSchedule& schedule);

}  // namespace ridge
