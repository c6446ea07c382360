// LengthBatches: the batches of an epoch, each of samples of one length class.
//
// Shuffled, the batches come in an order of (seed, epoch), and a class's samples come into its
// batches in another one.  Any batch is reached at once.
#pragma once
#include "ridge/data/length_classes.h"
#include "ridge/data/permutation.h"
#include "ridge/data/stage.h"

namespace ridge {

class LengthBatches : public Stage {
 public:
  // REQUIRES: classes->batches() >= 1.
  LengthBatches(LengthClassesPtr classes, bool shuffle, uint64_t seed);

  int64_t size() const override { return size_; }
  void Seek(int64_t epoch, int64_t index) override;
  bool Next(Element& element) override;  // Element::form is the class

 private:
  struct Place {
    size_t of = 0;      // the class
    int64_t batch = 0;  // of the class
  };
  Place PlaceOf(int64_t batch) const;

  const LengthClassesPtr classes_;
  const int64_t size_;
  const bool shuffle_;
  const uint64_t seed_;
  int64_t epoch_ = 0, next_ = 0;
  std::optional<Permutation> batches_;               // of the epoch
  std::vector<std::optional<Permutation>> samples_;  // by class
};

}  // namespace ridge
