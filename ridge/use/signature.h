// Signature: how raw inputs reach a trained model, and what its output says.
//
// A run folder has it in its options and its preprocessing; an exported ONNX file carries it as one
// JSON text in metadata_props, under kSignatureKey (docs/predict.md).
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/data/preprocessing.h"
#include "ridge/learn/training_graph.h"
#include "ridge/onnx/file/model.h"

namespace ridge {

enum class AnswerKind {
  kClasses,  // [B, classes]: one of them
  kYesNo,    // [B] or [B, 1]: the probability of 1
  kNumber,   // [B] or [B, 1]: in the unit of the label
  kMask,     // [B, classes, H, W]: one of them a pixel
  kBoxes,    // [B, places, 4 + classes]: x1, y1, x2, y2 and probabilities
  kText,     // [B, frames, classes]: letters, as ctc_loss reads them
};

struct CarriedFile {
  std::string name, bytes;
  bool operator==(const CarriedFile&) const = default;
};

struct Signature {
  std::string output;  // of the graph
  AnswerKind kind = AnswerKind::kNumber;
  bool scores = false;       // before softmax or sigmoid; else the output is probabilities
  std::string lengths = {};  // of kText: the value that counts a sample's frames
  int64_t blank = 0;         // of kText: the class between letters
  std::string label = {};    // what is answered, where the data name it
  Preprocessing preprocessing = {};
  std::vector<CarriedFile> tokenizer =
      {};  // of an exported file of text: preprocessing.text->files
  bool operator==(const Signature&) const = default;
};

inline constexpr char kSignatureKey[] = "ridge.prediction";

// Of a graph with its loss (`loss` is --loss).  Fails with kUnsupported when no output is one
// answer a sample; the message lists the outputs.
Result<Signature> FindSignature(const Graph& forward, const ForwardInfo& facts,
                                const std::string& loss, Preprocessing preprocessing);

// Of a run, with the files of its tokenizer.  Fails as it and as reading the run do.
Result<Signature> SignatureOfRun(const std::string& run);

// Of a signature of kText: the frames of each sample; kNoValue when the graph lacks them.
ValueId LengthsOf(const Graph& graph, const Signature& signature);

// Fails with kInvalidModel when the graph lacks the output, or it has another shape or another
// number of classes than the signature.  `where` begins the message.
Status CheckSignature(const std::string& where, const Signature& signature, const Graph& graph);

std::string SignatureToJson(const Signature& signature);
// Fails with kInvalidModel; `where` begins the message.
Result<Signature> SignatureFromJson(const std::string& text, const std::string& where);

// The text that a file carries; nothing when it has none.
std::optional<std::string> SignatureText(const OnnxModel& model);
void SetSignature(const Signature& signature, onnx::ModelProto& proto);

// "10 classes with names" of an export's report.
std::string DescribeSignature(const Signature& signature);

}  // namespace ridge
