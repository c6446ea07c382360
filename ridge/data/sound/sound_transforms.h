// SoundAugmentation: random changes of training sounds, "cut,timemask:20:2,freqmask".
//
//   cut                      a part at a random place of longer sounds; it comes first, and the
//                            source does it: only it knows how long a sound is
//   timemask[:FRAMES[:N]]    N times (1) up to FRAMES (20) neighbouring frames become the mean
//   freqmask[:MELS[:N]]      N times (1) up to MELS (10) neighbouring mels become the mean
//
// The masks are SpecAugment's (Park et al., Interspeech 2019): a width of 0 to FRAMES, then a
// place, each drawn uniformly; the mean is that of the sample before any mask.  Draws are functions
// of (seed, stage, epoch, sample), as those of pictures are (image/transforms/transform.h).
// Thread-safe.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ridge/core/shape.h"
#include "ridge/core/status.h"
#include "ridge/data/image/transforms/random_box.h"

namespace ridge {

// What --augment may say of sounds, for messages.
inline constexpr const char* kSoundTransforms = "cut, timemask[:FRAMES[:N]], freqmask[:MELS[:N]]";

class SoundAugmentation {
 public:
  // Fails with kInvalidArgument; the message is the bare reason.
  static Result<SoundAugmentation> Parse(const std::string& text, uint64_t seed);

  bool cuts() const { return cuts_; }
  bool masks() const { return !masks_.empty(); }
  CropDraw Cut(int64_t epoch, int64_t sample) const;  // REQUIRES: cuts()
  // `dims`: [mels, frames].
  void Apply(const Dims& dims, int64_t epoch, int64_t sample, float* values) const;

 private:
  struct Mask {
    bool of_frames = false;
    int64_t most = 0, count = 0;
    RandomKey key;  // without the epoch
  };
  bool cuts_ = false;
  RandomKey cut_key_;
  std::vector<Mask> masks_;
};

}  // namespace ridge
