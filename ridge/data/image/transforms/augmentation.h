// Augmentation: random transforms in a row, "flip,crop:4".
//
// Each stage draws with the key (seed, its name and how often the name came before), so that a
// further stage changes nothing of the others.  Thread-safe.
#pragma once
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/data/image/transforms/mixing.h"
#include "ridge/data/image/transforms/random_box.h"

namespace ridge {

class Augmentation {
 public:
  // Fails with kInvalidArgument for unknown names, wrong numbers, an rrc that is not first, and two
  // mixups; the message is the bare reason.
  static Result<Augmentation> Parse(const std::string& text, uint64_t seed);

  const Mixing& mixing() const { return mixing_; }  // which a source does, behind all others
  bool changes_nothing() const { return stages_.empty(); }  // but for mixing

  bool crops() const;                                      // the first stage is rrc
  CropDraw Crop(int64_t epoch, int64_t sample) const;      // REQUIRES: crops()
  int64_t scratch_bytes(const PictureShape& shape) const;  // of Apply
  // All stages but rrc.
  void Apply(const PictureShape& shape, int64_t epoch, int64_t sample, std::span<char> scratch,
             uint8_t* pixels) const;
  // What Apply of the same sample does to its mask: u8[H,W], 0 where a pixel has no class.  Pixels
  // from beyond the picture, and erased ones, have none.
  void ApplyToMask(const PictureShape& shape, int64_t epoch, int64_t sample,
                   std::span<char> scratch, uint8_t* ids) const;

  // Boxes x1, y1, x2, y2 in pixels as Apply moves the picture; those without an area stay.
  // REQUIRES: MovesBoxes() is ok.
  void MoveBoxes(const PictureShape& shape, int64_t epoch, int64_t sample,
                 std::span<float> boxes) const;
  // Fails with kInvalidArgument and names the first stage that does not say where a box goes.
  Status MovesBoxes() const;

 private:
  struct Stage {
    const PictureTransform* transform = nullptr;
    TransformNumbers numbers{};
    RandomKey key;  // without the epoch
  };

  static TransformDraws DrawsOf(const Stage& stage, int64_t epoch, int64_t sample);
  Status TakeMixing(const PictureTransform& transform, const TransformNumbers& numbers);

  std::vector<Stage> stages_;
  Mixing mixing_;
};

}  // namespace ridge
