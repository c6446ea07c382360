// Pictures of an evaluation.
#pragma once
#include <optional>

#include "ridge/data/image/encode.h"
#include "ridge/observe/evaluation_record.h"

namespace ridge {

// A row a class, columns what it was taken for: white is none of the row, dark all of it.  Nothing
// without a matrix.
std::optional<RgbPicture> ConfusionPicture(const EvaluationRecord& record);

RgbPicture ToRgb(const Thumbnail& thumbnail);

}  // namespace ridge
