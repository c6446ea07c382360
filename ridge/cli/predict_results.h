// What `ridge predict` answers, as text, JSON and CSV.
#pragma once
#include <string>
#include <vector>

#include "ridge/observe/detected_boxes.h"
#include "ridge/report/terminal.h"
#include "ridge/use/predictor.h"

namespace ridge::cli {

struct RankedClass {
  int64_t index = 0;
  double probability = 0;  // of a mask: the share of its pixels
};

struct InputAnswer {
  std::string name;
  std::vector<RankedClass> top;  // best first; empty of numbers
  double number = 0;
  std::string file = {};  // the picture that was written
  std::string text = {};
  std::vector<DetectedBox> boxes = {};  // pixels of the picture, best first
};

struct SkippedInput {
  std::string name, why;
};

struct PredictResults {
  Signature signature;
  int64_t step = 0;
  std::vector<InputAnswer> predictions;
  std::vector<SkippedInput> skipped;

  int64_t boxes() const;
  bool is_boxes() const { return signature.kind == AnswerKind::kBoxes; }
  bool is_mask() const { return signature.kind == AnswerKind::kMask; }
  const char* probability() const { return is_mask() ? "share" : "probability"; }
  bool is_text() const { return signature.kind == AnswerKind::kText; }
  bool has_classes() const {
    return signature.kind != AnswerKind::kNumber && !is_text() && !is_boxes();
  }
  std::string label() const {
    if (is_text()) return "text";
    return signature.label.empty() ? "value" : signature.label;
  }
  std::string NameOf(const RankedClass& ranked) const { return ClassName(signature, ranked.index); }
};

std::string ResultsText(const PredictResults& results, const Terminal& terminal);
std::string ResultsJson(const PredictResults& results);
// RFC 4180.
std::string ResultsCsv(const PredictResults& results);

}  // namespace ridge::cli
