// Whether a schedule can run, and what it keeps.
#pragma once
#include <vector>

#include "ridge/pipeline/schedule.h"

namespace ridge {

// A send blocks while `capacity` messages of its chunk and kind wait to be received; with capacity
// 0 until its receive begins.  Receives block until their message is there.
//
// Fails with kInternal (a schedule is made by a program) when an operation is missing, twice, on
// another device or before what it needs; when micro batches of a chunk are not in increasing order
// (their sums would have other bits); and when devices wait for each other, with the circle of
// waiting operations.
Status CheckSchedule(const PipelineSchedule& schedule, int capacity);

// The least capacity with which no device waits for ever.  REQUIRES: CheckSchedule passes with
// `schedule.micros`.
int LeastCapacity(const PipelineSchedule& schedule);

// By device, the largest sum over its chunks of `bytes_by_chunk` (of one micro batch) times the
// micro batches between their forward and the end of their backward (of their gradients of weights,
// where these are apart).
std::vector<int64_t> MostKeptBytes(const PipelineSchedule& schedule,
                                   const std::vector<int64_t>& bytes_by_chunk);
// The same in micro batches of chunks.
std::vector<int64_t> MostKeptMicros(const PipelineSchedule& schedule);

}  // namespace ridge
