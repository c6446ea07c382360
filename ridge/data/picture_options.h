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
  std::optional<ImageFit> fit;    // crop
  std::optional<ResizeFilter> filter;  // bilinear
};

// The keys that TakePictureOption knows.
const std::vector<std::string>& PictureKeys();

// Fails with kInvalidArgument for a wrong value; `spec` is for messages.
Status TakePictureOption(const std::string& spec, const std::string& key, const std::string& value,
                         PictureOptions& options);

// The size that is given, else that of the model's image; the channels of the model's image.  What
// neither says is that of `known`, which a run keeps; null: of none.  Fails with kInvalidArgument
// when nothing says a size.
Result<PictureTarget> MakePictureTarget(const std::string& spec, const PictureOptions& options,
                                        const std::vector<Field>& model_inputs,
                                        const Preprocessing* known = nullptr);

}  // namespace ridge
