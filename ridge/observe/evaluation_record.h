// EvaluationRecord: evaluation.json of a run folder: everything one evaluation tells.
//
// A number that is none (a ratio with divisor 0, a loss that is not finite) is null.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// Names without the data: "accuracy", "f1_macro".
using NamedMetrics = std::vector<std::pair<std::string, double>>;

struct ClassMetrics {
  std::string name;  // of the class; its number when it has none
  int64_t support = 0, said = 0, hits = 0;
  std::optional<double> precision, recall, f1;
  std::optional<double> iou = {};  // of pixels; there F1 is Dice
  // Of boxes, which have neither `said` nor what follows it.
  std::optional<double> ap50 = {}, ap50_95 = {};
};

// A picture of at most kMostThumbnail pixels a side: grey or red, green, blue, row by row.
struct Thumbnail {
  static constexpr int64_t kMostSide = 64;
  int64_t width = 0, height = 0, channels = 1;  // 1 or 3
  std::vector<uint8_t> pixels;
};

struct WrongRecord {
  int64_t index = 0;
  std::string origin;  // Source::Origin
  std::string label, said;
  double probability = 0;
  std::optional<Thumbnail> picture;
};

struct EvaluationRecord {
  std::string data;  // "test", "validation"; a spec of `ridge eval`
  int64_t step = 0, samples = 0;
  double loss = 0;
  std::optional<double> accuracy;
  NamedMetrics metrics;               // all but loss and accuracy
  bool pixels = false;                // classes are counted by pixel
  bool boxes = false;                 // classes are counted by box
  std::vector<ClassMetrics> classes;  // empty unless samples, pixels or boxes have a label each
  std::vector<int64_t> confusion;     // [label][said]; empty with too many classes
  std::vector<WrongRecord> wrong;     // most confident first
};

inline constexpr char kEvaluationFile[] = "evaluation.json";

std::string RecordToJson(const EvaluationRecord& record);
// `file` is for messages.  Fails with kInvalidData.
Result<EvaluationRecord> RecordFromJson(const std::string& text, const std::string& file);

// The confusion matrix: a first line with the classes that were said, then a line a class of the
// labels.  REQUIRES: there is one.
std::string ConfusionToCsv(const EvaluationRecord& record);

}  // namespace ridge
