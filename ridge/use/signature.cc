#include "ridge/use/signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/files.h"
#include "ridge/core/units.h"
#include "ridge/data/spelling.h"
#include "ridge/graph/base64.h"
#include "ridge/learn/loss.h"
#include "ridge/train/load/forward.h"
#include "ridge/train/store/preprocessing_file.h"

namespace ridge {
namespace {

using SignatureJson = nlohmann::ordered_json;

constexpr char kFormat[] = "ridge.prediction";
constexpr int kVersion = 1;
constexpr int64_t kMostTextBytes = int64_t{1} << 28;
constexpr int64_t kBoxSides = 4;
constexpr std::array<const char*, 6> kKinds = {"classes", "yes-no", "number",
                                               "mask",    "boxes",  "text"};

Status NoAnswer(const Graph& graph, const std::string& why) {
  std::string outputs;
  for (const GraphOutput& output : graph.outputs()) {
    outputs += fmt::format("{}{} {}", outputs.empty() ? "" : ", ", output.name,
                           TypeToString(graph.type(output.value)));
  }
  return Status(ErrorCode::kUnsupported,
                fmt::format("{}: {}; its outputs are {}. hint: ridge run gives them as arrays",
                            graph.name, why, outputs));
}

bool IsMadeBy(const Graph& graph, ValueId value, const char* op) {
  const Node* node = graph.producer(value);
  return node != nullptr && node->op->name == op;
}

// The output that is the classifier's logits, or their softmax.
Result<Signature> FindClasses(const Graph& graph, ValueId logits) {
  Signature signature;
  signature.kind = AnswerKind::kClasses;
  for (const GraphOutput& output : graph.outputs()) {
    signature.output = output.name;
    signature.scores = output.value == logits;
    if (signature.scores) return signature;
    if (IsMadeBy(graph, output.value, "softmax") &&
        graph.producer(output.value)->inputs[0] == logits)
      return signature;
  }
  return NoAnswer(graph, "no output holds the classes' scores");
}

// The output [B, classes, H, W] whose transpose to classes last is the logits.
Result<Signature> FindMask(const Graph& graph, ValueId logits) {
  Signature signature;
  signature.kind = AnswerKind::kMask;
  signature.scores = true;
  const Node* transpose = graph.producer(logits);
  if (transpose == nullptr || transpose->op->name != "transpose")
    return NoAnswer(graph, "no output holds the classes' scores of pixels");
  for (const GraphOutput& output : graph.outputs()) {
    signature.output = output.name;
    if (output.value == transpose->inputs[0]) return signature;
  }
  return NoAnswer(graph, "no output holds the classes' scores of pixels");
}

Signature FindBoxes(const Graph& graph, const DetectionInfo& detection) {
  Signature signature;
  signature.kind = AnswerKind::kBoxes;
  for (const GraphOutput& output : graph.outputs()) {
    if (output.value == detection.detections) signature.output = output.name;
  }
  return signature;
}

// Letters need the run's spelling.
Result<Signature> FindText(const Graph& graph, const CtcInfo& ctc, const Preprocessing& learned) {
  Signature signature;
  signature.kind = AnswerKind::kText;
  signature.scores = true;
  signature.lengths = graph.value(ctc.lengths).name;
  for (const GraphOutput& output : graph.outputs()) {
    if (output.value == ctc.lengths) signature.lengths = output.name;
  }
  signature.blank = ctc.blank;
  if (!learned.spelling)
    return NoAnswer(graph, "its data were no transcripts, so its classes are no letters");
  for (const GraphOutput& output : graph.outputs()) {
    signature.output = output.name;
    if (output.value == ctc.logits) return signature;
  }
  return NoAnswer(graph, "no output holds the scores of letters");
}

// The only float output beside the loss.
Result<std::string> OnlyOutput(const Graph& graph, ValueId loss) {
  std::string found;
  for (const GraphOutput& output : graph.outputs()) {
    if (output.value == loss || !IsFloat(graph.type(output.value).dtype)) continue;
    if (!found.empty()) return NoAnswer(graph, "several outputs could be the answer");
    found = output.name;
  }
  if (found.empty()) return NoAnswer(graph, "no output but the loss");
  return found;
}

Result<Signature> FindNumber(const Graph& graph, ValueId loss, const std::string& option) {
  LossSpec spec;
  if (!option.empty()) {
    RIDGE_ASSIGN_OR_RETURN(spec, ParseLoss(option));
  }
  Signature signature;
  signature.output = spec.output;
  if (spec.kind == LossKind::kOutput) {
    RIDGE_ASSIGN_OR_RETURN(signature.output, OnlyOutput(graph, loss));
  }
  if (spec.kind != LossKind::kBce) return signature;
  signature.kind = AnswerKind::kYesNo;
  signature.scores = !IsMadeBy(graph, graph.FindOutput(signature.output), "sigmoid");
  return signature;
}

// Whether the output is one answer a sample.
bool HasAnswerShape(AnswerKind kind, const Dims& dims) {
  if (kind == AnswerKind::kClasses) return dims.size() == 2;
  if (kind == AnswerKind::kText) return dims.size() == 3;
  if (kind == AnswerKind::kBoxes) return dims.size() == 3 && dims[2] > kBoxSides;
  if (kind == AnswerKind::kMask) return dims.size() == 4 && dims[1] <= kMostMaskClasses;
  return dims.size() == 1 || (dims.size() == 2 && dims[1] == 1);
}

}  // namespace

Result<Signature> FindSignature(const Graph& forward, const ForwardInfo& facts,
                                const std::string& loss, Preprocessing preprocessing) {
  const bool pixels =
      facts.logits != kNoValue && forward.type(facts.label).rank() == kPixelLabelRank;
  RIDGE_ASSIGN_OR_RETURN(Signature signature,
                         facts.detection            ? FindBoxes(forward, *facts.detection)
                         : facts.ctc                ? FindText(forward, *facts.ctc, preprocessing)
                         : pixels                   ? FindMask(forward, facts.logits)
                         : facts.logits != kNoValue ? FindClasses(forward, facts.logits)
                                                    : FindNumber(forward, facts.loss, loss));
  const ValueId output = forward.FindOutput(signature.output);
  if (output == kNoValue || !HasAnswerShape(signature.kind, forward.type(output).dims))
    return NoAnswer(forward,
                    fmt::format("'{}' is not one answer for each sample", signature.output));
  if (preprocessing.table && preprocessing.table->label)
    signature.label = preprocessing.table->label->name;
  signature.preprocessing = std::move(preprocessing);
  return signature;
}

namespace {

Status AddTokenizer(Signature& signature) {
  if (!signature.preprocessing.text) return Status();
  for (const std::string& path : signature.preprocessing.text->files) {
    CarriedFile file{std::filesystem::path(path).filename().string(), ""};
    RIDGE_ASSIGN_OR_RETURN(file.bytes, ReadFile(path, kMostTextBytes));
    signature.tokenizer.push_back(std::move(file));
  }
  return Status();
}

SignatureJson TokenizerJson(const std::vector<CarriedFile>& files) {
  SignatureJson json = SignatureJson::object();
  for (const CarriedFile& file : files) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(file.bytes.data());
    json[file.name] = EncodeBase64({bytes, file.bytes.size()});
  }
  return json;
}

std::vector<CarriedFile> ReadTokenizer(const SignatureJson& json) {
  std::vector<CarriedFile> files;
  for (const auto& [name, text] : json.items()) {
    const auto bytes = DecodeBase64(text.get<std::string>());
    if (!bytes) throw std::out_of_range(fmt::format("{} of the tokenizer is no base64", name));
    files.push_back({name, std::string(bytes->begin(), bytes->end())});
  }
  return files;
}

}  // namespace

Result<Signature> SignatureOfRun(const std::string& run) {
  RIDGE_ASSIGN_OR_RETURN(const Run opened, Run::Open(run));
  TrainOptions options = opened.options();
  options.data.clear();
  options.validation.clear();
  options.weights.clear();
  options.weights_skip.clear();
  options.dims.insert(options.dims.end(), options.data_dims.begin(), options.data_dims.end());
  RIDGE_ASSIGN_OR_RETURN(const Forward forward, LoadForward(options, run));
  RIDGE_ASSIGN_OR_RETURN(const auto kept, PreprocessingOf(opened));
  RIDGE_ASSIGN_OR_RETURN(Signature signature,
                         FindSignature(forward.graph, forward.facts, options.loss,
                                       kept == nullptr ? Preprocessing() : *kept));
  RIDGE_RETURN_IF_ERROR(AddTokenizer(signature));
  return signature;
}

namespace {

Status CheckText(const std::string& where, const Signature& signature, const Graph& graph) {
  const auto bad = [&](const std::string& what) {
    return Status(ErrorCode::kInvalidModel, fmt::format("{}: {}: {}", where, kSignatureKey, what));
  };
  if (!signature.preprocessing.spelling) return bad("has no letters");
  const int64_t letters = Spelling(*signature.preprocessing.spelling).classes();
  const TensorType& scores = graph.type(graph.FindOutput(signature.output));
  if (scores.dims[2] != letters) {
    return bad(fmt::format("spells with {} classes; output '{}' has {}", letters, signature.output,
                           scores.dims[2]));
  }
  const ValueId lengths = LengthsOf(graph, signature);
  if (lengths == kNoValue)
    return bad(fmt::format("names lengths '{}', which the model lacks", signature.lengths));
  const TensorType& type = graph.type(lengths);
  if (!IsFloat(type.dtype) && type.dims == Dims{scores.dims[0]}) return Status();
  return bad(
      fmt::format("names lengths '{}', which are {}", signature.lengths, TypeToString(type)));
}

// Of an answer that is of one class among several.
std::optional<int64_t> ClassesOf(AnswerKind kind, const Dims& dims) {
  if (kind == AnswerKind::kClasses || kind == AnswerKind::kMask) return dims[1];
  if (kind == AnswerKind::kBoxes) return dims[2] - kBoxSides;
  return std::nullopt;
}

}  // namespace

ValueId LengthsOf(const Graph& graph, const Signature& signature) {
  const ValueId output = graph.FindOutput(signature.lengths);
  return output != kNoValue ? output : graph.FindValue(signature.lengths);
}

Status CheckSignature(const std::string& where, const Signature& signature, const Graph& graph) {
  const ValueId output = graph.FindOutput(signature.output);
  const auto bad = [&](const std::string& what) {
    return Status(ErrorCode::kInvalidModel, fmt::format("{}: {}: {}", where, kSignatureKey, what));
  };
  if (output == kNoValue)
    return bad(fmt::format("names output '{}', which the model lacks", signature.output));
  const TensorType& type = graph.type(output);
  if (!IsFloat(type.dtype) || !HasAnswerShape(signature.kind, type.dims)) {
    return bad(fmt::format("says '{}' is {}; it is {}", signature.output,
                           kKinds[static_cast<size_t>(signature.kind)], TypeToString(type)));
  }
  if (signature.kind == AnswerKind::kText) return CheckText(where, signature, graph);
  const auto names = static_cast<int64_t>(signature.preprocessing.classes.size());
  const std::optional<int64_t> classes = ClassesOf(signature.kind, type.dims);
  if (!classes || names == 0 || names == *classes) return Status();
  return bad(
      fmt::format("names {} classes; output '{}' has {}", names, signature.output, *classes));
}

std::string SignatureToJson(const Signature& signature) {
  SignatureJson json = {{"format", kFormat},
                        {"version", kVersion},
                        {"output", signature.output},
                        {"answer", kKinds[static_cast<size_t>(signature.kind)]},
                        {"scores", signature.scores}};
  if (signature.kind == AnswerKind::kText) {
    json["lengths"] = signature.lengths;
    json["blank"] = signature.blank;
  }
  if (!signature.label.empty()) json["label"] = signature.label;
  json["preprocessing"] = SignatureJson::parse(PreprocessingToJson(signature.preprocessing));
  if (!signature.tokenizer.empty()) json["tokenizer"] = TokenizerJson(signature.tokenizer);
  return json.dump(-1, ' ', false, SignatureJson::error_handler_t::replace);
}

Result<Signature> SignatureFromJson(const std::string& text, const std::string& where) {
  const auto bad = [&](const std::string& why) {
    return Status(ErrorCode::kInvalidModel, fmt::format("{}: {}: {}", where, kSignatureKey, why));
  };
  if (std::ssize(text) > kMostTextBytes)
    return bad(fmt::format("has {} bytes, at most {} are read", text.size(), kMostTextBytes));
  try {
    const SignatureJson json = SignatureJson::parse(text);
    if (const auto format = json.at("format").get<std::string>(); format != kFormat)
      return bad(fmt::format("is of format '{}'; this program reads '{}'", format, kFormat));
    if (const int version = json.at("version").get<int>(); version != kVersion)
      return bad(fmt::format("is of version {}; this program reads {}", version, kVersion));
    Signature signature;
    signature.output = json.at("output").get<std::string>();
    const auto kind = json.at("answer").get<std::string>();
    const auto* found = std::find(kKinds.begin(), kKinds.end(), kind);
    if (found == kKinds.end()) return bad(fmt::format("answer is '{}'", kind));
    signature.kind = static_cast<AnswerKind>(found - kKinds.begin());
    signature.scores = json.at("scores").get<bool>();
    if (json.contains("lengths")) signature.lengths = json.at("lengths").get<std::string>();
    if (json.contains("blank")) signature.blank = json.at("blank").get<int64_t>();
    if (json.contains("label")) signature.label = json.at("label").get<std::string>();
    auto read = PreprocessingFromJson(json.at("preprocessing").dump(), "preprocessing");
    if (!read.ok()) return bad(read.status().message());
    signature.preprocessing = std::move(*read);
    if (json.contains("tokenizer")) signature.tokenizer = ReadTokenizer(json.at("tokenizer"));
    return signature;
  } catch (const std::exception& error) {
    return bad(fmt::format("cannot be read: {}", error.what()));
  }
}

std::optional<std::string> SignatureText(const OnnxModel& model) {
  for (const onnx::StringStringEntryProto& entry : model.proto().metadata_props()) {
    if (entry.key() == kSignatureKey) return entry.value();
  }
  return std::nullopt;
}

void SetSignature(const Signature& signature, onnx::ModelProto& proto) {
  const std::string text = SignatureToJson(signature);
  for (onnx::StringStringEntryProto& entry : *proto.mutable_metadata_props()) {
    if (entry.key() != kSignatureKey) continue;
    entry.set_value(text);
    return;
  }
  onnx::StringStringEntryProto& entry = *proto.add_metadata_props();
  entry.set_key(kSignatureKey);
  entry.set_value(text);
}

std::string DescribeSignature(const Signature& signature) {
  const Preprocessing& from = signature.preprocessing;
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!from.classes.empty()) {
    const auto count = static_cast<int64_t>(from.classes.size());
    add(fmt::format("the names of {} classes", count));
  }
  if (from.pictures) {
    const ImageSize& size = from.pictures->target.size;
    add(fmt::format("pictures of {}x{}", size.height, size.width));
  }
  if (from.clips) add(fmt::format("clips of {} frames", from.clips->frames));
  if (from.sounds) add(fmt::format("sounds of {:.4g} s", from.sounds->seconds()));
  if (from.spelling) {
    const auto count = static_cast<int64_t>(from.spelling->letters.size());
    add(fmt::format("the spelling of {}", FormatCountOf(count, "letter")));
  }
  if (from.points) add(fmt::format("clouds of {} points", from.points->count));
  if (from.table) {
    add(FormatCountOf(static_cast<int64_t>(from.table->columns.size()), "column") + " of a table");
  }
  if (from.text) add(fmt::format("the tokenizer ({})", from.text->kind));
  return text.empty() ? "what its output says" : text;
}

}  // namespace ridge
