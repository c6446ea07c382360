// Timeline: when each operation of a schedule runs, from seconds of operations and transfers.
//
// A device does one thing at a time.  A send costs the device nothing: its message leaves when the
// link between the two devices (one for each direction) is free, and takes its seconds.
#pragma once
#include <string>
#include <vector>

#include "ridge/pipeline/schedule.h"

namespace ridge {

// Of one micro batch of a chunk.
struct ChunkSeconds {
  double forward_s = 0;
  double backward_s = 0;  // all of it, or without the gradients of weights where these are apart
  double weights_s = 0;
  double send_forward_s = 0;   // of its activations to the next chunk
  double send_backward_s = 0;  // of its gradients to the previous one
};

struct TimedOperation {
  Operation operation;
  double begin_s = 0, end_s = 0;
};

struct Timeline {
  std::vector<std::vector<TimedOperation>> ops;  // by device: what it computes
  std::vector<double> busy_s;                    // by device
  double makespan_s = 0;
  double bubble_share = 0;  // of devices * makespan: not busy
};

// REQUIRES: CheckSchedule passes with `schedule.micros`, and `seconds` has one entry a chunk.
Timeline TimeSchedule(const PipelineSchedule& schedule, const std::vector<ChunkSeconds>& seconds);

// The share of idle time where all chunks take the same seconds, backward and gradients of weights
// together twice the forward, and transfers take none:
//   gpipe, 1f1b     (p - 1) / (m + p - 1)
//   interleaved:v   (p - 1) / (v m + p - 1)
//   zero-bubble     (p - 1) / (3 m + p - 1), where m >= p and backward and gradients of weights
//                   take the forward's seconds each
double EqualStagesBubble(const ScheduleKind& kind, int devices, int micros);

// A line a device, `columns` wide: digits are forwards, small letters backwards, capital letters
// gradients of weights (micro batch modulo 10 of each), "." is idle.
//
//   0 |0123......aa3bbcc..
std::string GanttText(const Timeline& timeline, int columns);

}  // namespace ridge
