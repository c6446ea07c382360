// The samples of tar archives: which members make one, and where their parts lie.
#pragma once
#include <functional>
#include <string>
#include <unordered_set>
#include <vector>

#include "ridge/data/container/container_options.h"
#include "ridge/data/container/label_column.h"
#include "ridge/data/container/tar_file.h"
#include "ridge/data/image/picture.h"
#include "ridge/data/source.h"

namespace ridge {

// A part of a sample by the suffix of its member.
enum class PartUse { kPicture, kClass, kJson, kArray, kOther };

struct WebPart {
  std::string suffix;  // "cls", "left.jpg"; of lower case
  PartUse use = PartUse::kOther;
  Field field;  // a picture's type is that of the target
};

// What the first sample has.  The label is the last part.
struct WebLayout {
  std::vector<WebPart> parts;  // those that become fields
  std::vector<std::string> notes;

  const WebPart* picture() const;  // null: there is none
  const WebPart* label() const;
};

// Where the bytes of a field lie.
struct WebPlace {
  FilePlace place;
  int64_t bytes = 0;
};

// The samples of several files.  Of each the places of its parts but the label, in their order.
struct WebIndex {
  FileTable files;
  std::vector<WebPlace> places;
  std::vector<int64_t> labels;
  std::vector<std::string> classes;  // names of the labels, if they have any
  std::vector<uint64_t> hashes;      // of the samples' names
  int64_t samples = 0;
};

// The layout of the first sample.
Result<WebLayout> FindLayout(const std::string& spec, const FileTable& files,
                             const ContainerOptions& options);

// All samples; each has the parts of the layout.  `reader` admits the pictures; null: their headers
// are not read.  `classes` are those of the labels when they are known.
Result<WebIndex> IndexSamples(FileTable files, const WebLayout& layout,
                              const ContainerOptions& options,
                              const std::vector<std::string>& classes, PictureReader* reader);

}  // namespace ridge
