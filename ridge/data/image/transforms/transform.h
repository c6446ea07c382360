// PictureTransform: one random change of a u8 picture, in place; the table lists them.
//
// A transform is a function of the picture, its numbers and its draws alone.  The draws are Philox
// words of (seed, stage, epoch, sample), so threads, batches and resuming change nothing.  What is
// done with given numbers is in geometry.h, color.h and filters.h, and is tested against
// torchvision.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "ridge/core/random.h"

namespace ridge {

struct PictureShape {
  int64_t height = 0, width = 0;
  int channels = 3;                    // 1 or 3
  std::array<uint8_t, 3> erased = {};  // what erased pixels become

  int64_t pixels() const { return height * width; }
  int64_t bytes() const { return pixels() * channels; }
};

// The random numbers of one stage and one sample, in the order in which they are asked for.
class TransformDraws {
 public:
  // key.step: the epoch.
  TransformDraws(const RandomKey& key, int64_t sample) : key_(key), sample_(sample) {}

  uint32_t Word();
  double Uniform(double least, double most) { return least + (most - least) * ToUniform(Word()); }
  bool Chance(double probability) { return ToUniform(Word()) < probability; }
  int64_t Below(int64_t count) {
    return static_cast<int64_t>(uint64_t{Word()} * static_cast<uint64_t>(count) >> 32);
  }

 private:
  RandomKey key_;
  int64_t sample_;
  uint64_t next_ = 0;
  std::array<uint32_t, 4> block_{};
};

inline constexpr int kMostNumbers = 4;
using TransformNumbers = std::array<double, kMostNumbers>;

// A number behind the name: "crop:4".
struct NumberRange {
  double least = 0, most = 0, by_default = 0;
  bool whole = false;
};

struct PictureTransform {
  const char* name;
  const char* form;  // "crop:PIXELS"
  const char* doc;
  int required;  // numbers that have no default
  int count;     // numbers
  std::array<NumberRange, kMostNumbers> ranges;

  int64_t (*scratch_bytes)(const PictureShape&, const TransformNumbers&);  // null: none
  // REQUIRES: `scratch` has scratch_bytes, aligned for floats.  Null: the source does it (rrc).
  void (*apply)(const PictureShape&, const TransformNumbers&, TransformDraws&,
                std::span<char> scratch, uint8_t* pixels);
  bool mixes = false;  // two samples: Mixing
  // What it does to the mask of the picture, u8[H,W] where 0 is no class: the same move by the same
  // draws.  Null: nothing.
  void (*apply_to_mask)(const PictureShape&, const TransformNumbers&, TransformDraws&,
                        std::span<char> scratch, uint8_t* ids) = nullptr;
};

std::span<const PictureTransform> PictureTransforms();

}  // namespace ridge
