// Stage: an iterator over one epoch of elements, which starts at any position at once.
//
// Stages are stacked: sequence -> shuffle -> batch -> repeat.  They carry sample numbers; the
// samples themselves are read at the end (batch_loader.h), through sources that map.h and cache.h
// wrap. A stage is a pure function of the position it was put at: nothing is skipped to get there.
// Used by one thread at a time.
#pragma once
#include <cstdint>
#include <vector>

namespace ridge {

// The position of a pipeline: everything before is consumed.  Two integers, so that a checkpoint
// can hold it as JSON.
struct Position {
  int64_t epoch = 0;
  int64_t next_batch = 0;  // within the epoch
  bool operator==(const Position&) const = default;
};

struct Element {
  int64_t epoch = 0;
  int64_t index = 0;             // its number within the epoch, from 0
  std::vector<int64_t> samples;  // sample numbers: one each before the batch stage
  int form = 0;                  // of a batch: which of the loader's (BatchForm)
};

class Stage {
 public:
  virtual ~Stage() = default;

  // Elements of an epoch.
  virtual int64_t size() const = 0;

  // Element `index` of `epoch` comes next.  REQUIRES: 0 <= index <= size().
  virtual void Seek(int64_t epoch, int64_t index) = 0;

  // False at the end of the epoch, and then again until Seek.  Allocates nothing once `element` has
  // been used.
  virtual bool Next(Element& element) = 0;
};

}  // namespace ridge
