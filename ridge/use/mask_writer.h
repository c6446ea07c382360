// MaskWriter: the masks that a model says of pictures, as files.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/data/image/picture.h"
#include "ridge/use/answer_files.h"

namespace ridge {

// The class of the largest score of each pixel, the first of equals; scores [classes, pixels].
// REQUIRES: classes <= kMostMaskClasses.
std::vector<uint8_t> ClassOfPixels(std::span<const double> scores, int64_t classes);

// The mask of the resized picture in the pixels of the picture itself: the nearest one; 255 where
// the picture was cut off.
std::vector<uint8_t> MaskOfPicture(std::span<const uint8_t> ids, const PictureTarget& target,
                                   const ImageSize& picture);

class MaskWriter {
 public:
  // `size`: of the model's masks; `target`: what pictures became for it, if inputs are pictures.
  MaskWriter(std::string folder, const ImageSize& size, std::optional<PictureTarget> target)
      : paths_(std::move(folder)), size_(size), target_(std::move(target)) {}

  // Writes FOLDER/NAME.png, with a palette, and for a picture FOLDER/NAME.overlay.png, both as
  // large as the picture; another input gives a mask of the model's size.  Of equal names the
  // second one is NAME-2.  Returns the mask's path.
  Result<std::string> Write(const std::string& input, std::span<const uint8_t> ids);

 private:
  AnswerPaths paths_;
  const ImageSize size_;
  const std::optional<PictureTarget> target_;
};

}  // namespace ridge
