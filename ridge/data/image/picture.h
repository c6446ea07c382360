// PictureReader: the bytes of picture files to one size, whatever holds the bytes.
//
// A source shows it the header of each picture when it opens (Admit), so that the memory that
// reading takes is known before the run.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "ridge/core/shape.h"
#include "ridge/core/stage_times.h"
#include "ridge/core/status.h"
#include "ridge/data/image/crop.h"
#include "ridge/data/image/header.h"
#include "ridge/data/image/transforms/random_box.h"

namespace ridge {

constexpr int64_t kMostPictureSide = 1 << 14;  // of what pictures become

// What every picture becomes.
struct PictureTarget {
  ImageSize size;
  int channels = 3;  // 1: luma
  ImageFit fit = ImageFit::kCrop;
  ResizeFilter filter = ResizeFilter::kBilinear;

  TensorType type() const;  // u8[H,W,3], or u8[H,W]
  bool operator==(const PictureTarget&) const = default;
};

constexpr const char* kPictureChanged = "has changed since the data was opened";

constexpr uint8_t kNoClassId = 255;  // what losses and metrics ignore

// What the pixels of a file are.
enum class PictureContent : uint8_t { kColors, kClassIds };

class PictureReader {
 public:
  // Class ids need a target of one channel, resized by nearest.
  explicit PictureReader(const PictureTarget& target,
                         PictureContent content = PictureContent::kColors)
      : target_(target), content_(content) {}

  const PictureTarget& target() const { return target_; }

  // Such a picture may be read from now on.  Fails with kInvalidData when it is too thin to be
  // scaled: a thousand times longer than wide it would have billions of pixels.  The message is the
  // bare reason.
  Status Admit(const ImageHeader& header);

  int64_t scratch_bytes() const { return decoded_bytes_ + resize_bytes_; }
  int64_t heap_bytes() const { return heap_bytes_; }  // of a decoder, at most

  // `file`: a whole picture file; `out`: target().type().bytes().  With `crop` its box is resized,
  // whatever the target's fit, and no more than DecodeImageBox does is decoded; `stages`: see
  // SampleAt.  Fails with kInvalidData; the message is the
  // bare reason.
  // Thread-safe, each thread with a scratch of its own.  REQUIRES: scratch_bytes() in `scratch`.
  Status Read(std::span<const uint8_t> file, std::span<char> scratch, uint8_t* out,
              const CropDraw* crop = nullptr, StageSeconds* stages = nullptr) const;

  // The same of pixels that something else decodes: `decode` writes [height, width, 3] of `header`.
  using DecodePixels = std::function<Status(std::span<uint8_t> pixels)>;
  Status ReadPixels(const ImageHeader& header, const DecodePixels& decode, std::span<char> scratch,
                    uint8_t* out, const CropDraw* crop = nullptr,
                    StageSeconds* stages = nullptr) const;

 private:
  uint8_t margin() const { return content_ == PictureContent::kClassIds ? kNoClassId : kPadLevel; }
  ResizeCall Call(const ImageHeader& header) const;
  int64_t DecodeScratch(const ImageHeader& header) const;
  int64_t ResizeScratch(const ImageHeader& header) const;
  Status Decode(std::span<const uint8_t> file, const ImageHeader& header,
                std::span<uint8_t> pixels) const;
  // `decode` writes a part of the picture that holds the box, and returns it.
  using DecodePart = std::function<Result<PictureBox>(std::span<uint8_t> pixels)>;
  Status ReadPart(const ImageHeader& header, const DecodePart& decode, const PictureBox* box,
                  std::span<char> scratch, uint8_t* out, StageSeconds* stages) const;
  void ResizeBox(const uint8_t* pixels, const PictureBox& part, const PictureBox& box,
                 std::span<char> scratch, uint8_t* out) const;

  PictureTarget target_;
  PictureContent content_;
  int64_t decoded_bytes_ = 0, resize_bytes_ = 0, heap_bytes_ = 0;  // the largest of all admitted
};

}  // namespace ridge
