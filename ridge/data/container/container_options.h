// ContainerOptions: what a user says of records behind the pattern of their files:
// "train-*.tfrecord,size=224,label=breed".
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/picture_options.h"

namespace ridge {

struct ContainerOptions {
  std::string pattern;
  PictureOptions pictures;
  std::string image;               // image=NAME: what becomes the field `image`
  std::string label;               // label=NAME: what becomes the field `label`
  std::string json;                // json=KEY: the label is this value of the JSON
  std::string schema;              // schema=NAME:TYPE,...
  std::optional<int64_t> classes;  // classes=N
  int64_t first_label = 0;         // first-label=N: what stands for class 0
};

// `keys`: which of the options this kind of container takes, beside those of pictures.  The value
// of schema may hold commas.  Fails with kInvalidArgument; `spec` is for messages.
Result<ContainerOptions> ParseContainerOptions(const std::string& spec, const std::string& argument,
                                               const std::vector<std::string>& keys);

}  // namespace ridge
