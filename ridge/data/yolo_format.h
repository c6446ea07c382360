// The two text forms of a YOLO data set: a picture's labels, and the names in data.yaml.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ridge/data/box_source.h"

namespace ridge {

inline constexpr int64_t kMostObjectClasses = 1 << 16;

// Lines "CLASS CX CY WIDTH HEIGHT", each as a part of the picture from 0 to 1, or an outline "CLASS
// X Y X Y X Y .." whose box is taken.  A side that is out by 0.01 at most is cut, as are boxes that
// lie over the edge.  Fails with kInvalidData, "LINE: reason".
Result<std::vector<ObjectBox>> ParseYoloLabels(std::string_view text);

// The entry `names` of data.yaml: a list, or a map of 0, 1, ... to names, in lines of their own or
// in brackets.  Empty when there is no such entry.  Fails with kInvalidData, "LINE: reason".
Result<std::vector<std::string>> ParseYoloNames(std::string_view text);

}  // namespace ridge
