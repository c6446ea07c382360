// PictureOptions: what a user says of pictures behind a path: "photos,size=224,fit=stretch".
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/image/picture.h"
#include "ridge/data/source.h"

namespace ridge {

struct PictureOptions {
  std::optional<ImageSize> size;  // size=N, size=HxW
  ImageFit fit = ImageFit::kCrop;
  ResizeFilter filter = ResizeFilter::kBilinear;
};

// The keys that TakePictureOption knows.
const std::vector<std::string>& PictureKeys();

// Fails with kInvalidArgument for a wrong value; `spec` is for messages.
Status TakePictureOption(const std::string& spec, const std::string& key, const std::string& value,
                         PictureOptions& options);

// The size that is given, else that of the model's image; the channels of the model's image. Fails
// with kInvalidArgument when neither says a size.
Result<PictureTarget> MakePictureTarget(const std::string& spec, const PictureOptions& options,
                                        const std::vector<Field>& model_inputs);

}  // namespace ridge
