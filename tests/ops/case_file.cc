#include "tests/ops/case_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ridge/core/random.h"
#include "ridge/graph/text_attr.h"

namespace ridge {
namespace {

Status Bad(const std::string& text) { return Status(ErrorCode::kInvalidData, text); }

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// Whether a string begins or ends at i: not so at an escaped quote.
bool IsQuote(const std::string& line, size_t i) {
  return i < line.size() && line[i] == '"' && (i == 0 || line[i - 1] != '\\');
}

// Without a comment; a # inside quotes stays.
std::string WithoutComment(const std::string& line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (IsQuote(line, i)) quoted = !quoted;
    if (line[i] == '#' && !quoted) return line.substr(0, i);
  }
  return line;
}

// Words between spaces; brackets and quotes hold together.
std::vector<std::string> Words(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i <= line.size(); ++i) {
    const char c = i < line.size() ? line[i] : ' ';
    if (IsQuote(line, i)) quoted = !quoted;
    if (!quoted) depth += (c == '[') - (c == ']');
    if (c != ' ' || quoted || depth > 0) {
      word += c;
    } else if (!word.empty()) {
      words.push_back(word);
      word.clear();
    }
  }
  return words;
}

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(Trim(part));
  return parts;
}

Result<double> ParseNumber(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0) return Bad(fmt::format("'{}' is not a number", text));
  return value;
}

Result<std::vector<double>> ParseNumbers(const std::string& text) {
  std::vector<double> values;
  for (const std::string& part : Split(text, ',')) {
    RIDGE_ASSIGN_OR_RETURN(const double value, ParseNumber(part));
    values.push_back(value);
  }
  return values;
}

// "f32[2]=1,2".
Result<ExpectedOutput> ParseTypedValues(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return Bad(fmt::format("'{}' has no =", text));
  ExpectedOutput output{.has_type = true, .type = {}, .values = {}};
  RIDGE_ASSIGN_OR_RETURN(output.type, ParseType(text.substr(0, equals)));
  RIDGE_ASSIGN_OR_RETURN(output.values, ParseNumbers(text.substr(equals + 1)));
  if (static_cast<int64_t>(output.values.size()) != output.type.elements()) {
    return Bad(fmt::format("'{}' has {} values, its type {}", text, output.values.size(),
                           output.type.elements()));
  }
  return output;
}

Status AddInput(std::string word, OpCase& op_case) {
  if (word.back() == ',') word.pop_back();
  if (word == "_") {
    op_case.inputs.push_back(OpCall::Absent());
    op_case.values.emplace_back();
    return Status();
  }
  if (op_case.kind == OpCase::Kind::kValue) {
    RIDGE_ASSIGN_OR_RETURN(const ExpectedOutput given, ParseTypedValues(word));
    op_case.inputs.push_back(given.type);
    op_case.values.push_back(given.values);
    return Status();
  }
  RIDGE_ASSIGN_OR_RETURN(const TensorType type, ParseType(word));
  op_case.inputs.push_back(type);
  return Status();
}

Status AddRange(const std::string& name, const std::string& text, OpCase& op_case) {
  const size_t dots = text.find("..");
  if (dots == std::string::npos)
    return Bad(fmt::format("{} is '{}'; LO..HI is needed", name, text));
  RIDGE_ASSIGN_OR_RETURN(const double low, ParseNumber(text.substr(0, dots)));
  RIDGE_ASSIGN_OR_RETURN(const double high, ParseNumber(text.substr(dots + 2)));
  if (name != "range") {
    op_case.ranges[static_cast<size_t>(std::atoi(name.c_str() + 5))] = {low, high};
    return Status();
  }
  for (size_t i = 0; i < op_case.inputs.size(); ++i)
    op_case.ranges.try_emplace(i, DrawRange{low, high});
  return Status();
}

bool IsRangeName(const std::string& name) {
  return name.compare(0, 5, "range") == 0 &&
         name.find_first_not_of("0123456789", 5) == std::string::npos;
}

Status AddOption(const std::string& name, const std::string& text, OpCase& op_case) {
  if (IsRangeName(name)) return AddRange(name, text, op_case);
  if (name == "nograd") {
    op_case.check_gradient = text == "0";
    return Status();
  }
  RIDGE_ASSIGN_OR_RETURN(Attr attr, ParseAttr(text));
  if (name != "loss") {
    op_case.attrs[name] = std::move(attr);
    return Status();
  }
  const auto* outputs = std::get_if<std::vector<int64_t>>(&attr);
  if (outputs == nullptr) return Bad("loss must be a list of outputs");
  op_case.loss_outputs = *outputs;
  return Status();
}

// The words after case, error or value: inputs first, then attributes and options.
Status ParseWords(const std::vector<std::string>& words, OpCase& op_case) {
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    const size_t equals = word.find('='), bracket = word.find('[');
    if (equals != std::string::npos && (bracket == std::string::npos || equals < bracket)) {
      RIDGE_RETURN_IF_ERROR(AddOption(word.substr(0, equals), word.substr(equals + 1), op_case));
    } else {
      RIDGE_RETURN_IF_ERROR(AddInput(word, op_case));
    }
  }
  return Status();
}

Result<OpCase> ParseCase(const std::string& line) {
  const std::vector<std::string> words = Words(line);
  OpCase op_case;
  op_case.text = line;
  if (words[0] == "error") {
    op_case.kind = OpCase::Kind::kError;
  } else if (words[0] == "value") {
    op_case.kind = OpCase::Kind::kValue;
  } else if (words[0] != "case") {
    return Bad(fmt::format("'{}' is not case, error or value", words[0]));
  }
  RIDGE_RETURN_IF_ERROR(ParseWords(words, op_case));
  return op_case;
}

// An indented line: the text of an error, or the values of an output.
Status ParseIndented(const std::string& line, CaseFile& file) {
  if (file.cases.empty()) return Bad("an indented line needs a line above it");
  OpCase& op_case = file.cases.back();
  if (op_case.kind == OpCase::Kind::kError) {
    op_case.expected_error += (op_case.expected_error.empty() ? "" : " ") + line;
    return Status();
  }
  if (op_case.kind != OpCase::Kind::kValue) return Bad("a case takes no indented line");
  ExpectedOutput output;
  if (line.find('=') != std::string::npos) {
    RIDGE_ASSIGN_OR_RETURN(output, ParseTypedValues(line));
  } else {
    RIDGE_ASSIGN_OR_RETURN(output.values, ParseNumbers(line));
  }
  op_case.expected.push_back(std::move(output));
  return Status();
}

Status ParseLine(const std::string& raw, int number, CaseFile& file) {
  const bool is_message = !file.cases.empty() && file.cases.back().kind == OpCase::Kind::kError &&
                          !raw.empty() && raw[0] == ' ';
  const std::string line = Trim(is_message ? raw : WithoutComment(raw));
  if (line.empty()) return Status();
  if (raw[0] == ' ') return ParseIndented(line, file);
  RIDGE_ASSIGN_OR_RETURN(OpCase op_case, ParseCase(line));
  op_case.line = number;
  file.cases.push_back(std::move(op_case));
  return Status();
}

double Draw(const DrawRange& range, DType dtype, uint32_t word) {
  const double unit = ToUniform(word);
  if (dtype == DType::kBool) return unit < 0.5 ? 0 : 1;
  if (IsFloat(dtype)) return range.low + (range.high - range.low) * unit;
  return range.low + static_cast<double>(static_cast<int64_t>(unit * (range.high - range.low + 1)));
}

}  // namespace

Result<CaseFile> ParseCaseFile(const std::string& text, const std::string& path) {
  CaseFile file{.op = std::filesystem::path(path).stem().string(), .path = path, .cases = {}};
  std::stringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (Status status = ParseLine(line, number, file); !status.ok())
      return Bad(fmt::format("{}:{}: {}", path, number, status.message()));
  }
  for (const OpCase& op_case : file.cases) {
    const bool lacks = (op_case.kind == OpCase::Kind::kError && op_case.expected_error.empty()) ||
                       (op_case.kind == OpCase::Kind::kValue && op_case.expected.empty());
    if (lacks)
      return Bad(fmt::format("{}:{}: what is expected must follow, indented", path, op_case.line));
  }
  return file;
}

Result<CaseFile> ReadCaseFile(const std::string& path) {
  std::ifstream stream(path);
  if (!stream) return Bad(fmt::format("{}: can't be read", path));
  std::stringstream text;
  text << stream.rdbuf();
  return ParseCaseFile(text.str(), path);
}

std::vector<std::string> AllCaseFiles() {
  const char* source = std::getenv("RIDGE_SOURCE_DIR");
  const std::filesystem::path folder = std::filesystem::path(source ? source : ".") / "tests/ops";
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".case") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Tensor DrawInput(const OpCase& op_case, size_t i, DType dtype) {
  if (op_case.inputs[i] == OpCall::Absent()) return Tensor();
  const bool is_float = IsFloat(op_case.inputs[i].dtype);
  const auto found = op_case.ranges.find(i);
  const DrawRange fallback = is_float ? DrawRange{-1, 1} : DrawRange{0, 9};
  const DrawRange range = found == op_case.ranges.end() ? fallback : found->second;
  const RandomKey key{StableHash(op_case.text), static_cast<uint32_t>(i), 0};
  Tensor tensor({dtype, op_case.inputs[i].dims});
  for (int64_t k = 0; k < tensor.elements(); ++k) {
    const uint32_t word = Draw(key, 0, static_cast<uint64_t>(k));
    StoreFromDouble(dtype, tensor.mutable_data(), k, Draw(range, op_case.inputs[i].dtype, word));
  }
  return tensor;
}

Tensor CaseInput(const OpCase& op_case, size_t i) {
  if (op_case.kind != OpCase::Kind::kValue || op_case.inputs[i] == OpCall::Absent())
    return DrawInput(op_case, i, op_case.inputs[i].dtype);
  Tensor tensor(op_case.inputs[i]);
  ConvertFromDouble(tensor.type().dtype, op_case.values[i].data(), tensor.mutable_data(),
                    tensor.elements());
  return tensor;
}

Result<OpCall> InferCase(const OpDef& op, const OpCase& op_case) {
  OpCall call{.where = op.name + " 'y'", .inputs = op_case.inputs, .outputs = {}, .attrs = {}};
  call.attrs = op_case.attrs;
  RIDGE_ASSIGN_OR_RETURN(call.outputs, InferCall(op, call));
  return call;
}

}  // namespace ridge
