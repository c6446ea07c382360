// PictureOptions: what a user says of pictures behind a path: "photos,size=224,fit=stretch".
//
// What the user says comes first, then what the run keeps whose preprocessing is repeated, then the
// model's image and the defaults.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/image/picture.h"
#include "ridge/data/source.h"

namespace ridge {

struct PictureOptions {
  std::optional<ImageSize> size;  // size=N, size=HxW
  std::optional<ImageFit> fit;
  std::optional<ResizeFilter> filter;
  std::optional<PixelNormalization> normalization;
};

// The keys that TakePictureOption knows.
const std::vector<std::string>& PictureKeys();

// Fails with kInvalidArgument for a wrong value; `spec` is for messages.
Status TakePictureOption(const std::string& spec, const std::string& key, const std::string& value,
                         PictureOptions& options);

// What becomes of each picture; 224x224 where no model is known and nothing says a size.  Fails
// with kInvalidArgument when the model says none, or when means are given for other channels than
// the pictures have.
Result<PicturePreprocessing> PlanPictures(const std::string& spec, const PictureOptions& options,
                                          const DataOptions& data);

// The size and channels, as far as they are known before the model.
std::optional<PictureTarget> KnownTarget(const PictureOptions& options, const DataOptions& data);

// Of pictures as they are after decoding and resizing.
Field PictureField(const PicturePreprocessing& pictures);

// "imagenet", "0.5", "none", or MEAN:STD, where each is one number, or one a channel:
// "0.4/0.5/0.6". Null when it is none of them.
std::optional<PixelNormalization> ParseNormalization(const std::string& text);
inline constexpr const char* kNormalizationForms =
    "imagenet, 0.5, none, or MEAN:STD with one number each, or one a channel: M/M/M:S/S/S";

}  // namespace ridge
