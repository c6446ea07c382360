// Pictures with objects: the fields `image` u8[H,W,3], `boxes` f32[N,4] and `classes` i64[N].
//
// A box is x1, y1, x2, y2 in pixels of the picture as it is after resizing, cut at its edges; one
// of which nothing is left is left out.  Places behind the last have class -1 and a box of zeros.
// A picture is decoded when it is read; the paths and all boxes are held in memory.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/picture_options.h"
#include "ridge/data/source.h"

namespace ridge {

inline constexpr int64_t kMostBoxes = 4096;  // of a picture

// Sides as parts of the picture, from 0 to 1.
struct ObjectBox {
  float x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  int64_t object_class = 0;
  bool operator==(const ObjectBox&) const = default;
};

struct PictureObjects {
  std::string path;    // of the picture
  std::string labels;  // where its boxes stand, for messages: "labels/train/1.txt"
  std::vector<ObjectBox> boxes;
};

// What stands behind the path: pictures' options, and `boxes=N`.
struct BoxOptions {
  PictureOptions pictures;
  std::optional<int64_t> most_boxes;
};
std::vector<std::string> BoxKeys();
// Fails with kInvalidArgument; `spec` is for messages.
Result<BoxOptions> TakeBoxOptions(const std::string& spec,
                                  const std::vector<std::pair<std::string, std::string>>& options);

// The sets of a data set, and the names of its classes.
struct BoxSets {
  std::vector<PictureObjects> train, validation, test;
  std::vector<std::string> classes;

  int64_t most_boxes() const;  // of one picture; at least 1
};

// The places for boxes: those given, else the model's, else as many as a picture has at most.  A
// picture with more is bad.  Pictures are stretched to their size unless an option says otherwise.
Result<DataSplits> OpenBoxSets(const std::string& spec, BoxSets sets, const BoxOptions& boxes,
                               const DataOptions& options);
DataFacts BoxFacts(const BoxSets& sets, const BoxOptions& boxes, const DataOptions& options);

// Numbers of classes as those of the run that options.preprocessing is of.  Fails with kInvalidData
// when that has none of a name.
Status TakeRunClasses(const std::string& spec, const DataOptions& options, BoxSets& sets);

}  // namespace ridge
