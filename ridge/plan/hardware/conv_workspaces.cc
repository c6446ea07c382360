#include "ridge/plan/hardware/conv_workspaces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "ridge/core/split.h"
#include "ridge/plan/hardware/conv_workspace_table.h"

namespace ridge {
namespace {

// ---- the table
//
// # comments
// cuDNN 9.19.0
// DEVICE DEVICE...
// ANSWER ANSWER... QUESTION
//
// An answer is BYTES, BYTES/FIRST_BYTES where they differ, or - where there is none.

struct Table {
  std::string library;
  std::vector<std::string> devices;
  std::map<std::string, std::vector<std::optional<ConvAnswer>>, std::less<>> answers;
};

int64_t BytesFrom(std::string_view text) {
  int64_t bytes = -1;
  std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (bytes < 0) throw Bug(fmt::format("cuDNN's workspaces: '{}' is no number", text));
  return bytes;
}

std::optional<ConvAnswer> AnswerFrom(std::string_view text) {
  if (text == "-") return std::nullopt;
  const size_t slash = text.find('/');
  const int64_t bytes = BytesFrom(text.substr(0, slash));
  if (slash == std::string_view::npos) return ConvAnswer{bytes, bytes};
  return ConvAnswer{bytes, BytesFrom(text.substr(slash + 1))};
}

// Cuts off the first word of `line`.
std::string_view TakeWord(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

void AddRow(std::string_view line, Table& table) {
  std::vector<std::optional<ConvAnswer>> answers;
  for (size_t i = 0; i < table.devices.size(); ++i) answers.push_back(AnswerFrom(TakeWord(line)));
  table.answers.emplace(line, std::move(answers));
}

Table ReadTable(std::string_view text) {
  Table table;
  for (const std::string_view line : SplitAt(text, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    if (table.library.empty()) {
      table.library = line;
    } else if (table.devices.empty()) {
      for (const std::string_view device : SplitAt(line, ' ')) table.devices.emplace_back(device);
    } else {
      AddRow(line, table);
    }
  }
  return table;
}

std::vector<RecordedAnswer> AnswersOf(const Table& table) {
  std::vector<RecordedAnswer> all;
  for (const auto& [question, answers] : table.answers) {
    for (size_t i = 0; i < answers.size(); ++i) {
      if (answers[i]) all.push_back({question, table.devices[i], *answers[i]});
    }
  }
  return all;
}

const Table& Recorded() {
  static const Table table = ReadTable(kConvWorkspaceTable);
  return table;
}

// ---- questions

std::string JoinAxes(const SlidingWindow& window, int64_t WindowAxis::*member) {
  std::vector<int64_t> extents;
  for (const WindowAxis& axis : window.own()) extents.push_back(axis.*member);
  return fmt::format("{}", fmt::join(extents, "x"));
}

// The bias and the steps of a conv; its gradient's bias is a sum of its own.
std::string StepsOf(const OpDef& op, const OpCall& call) {
  if (op.name != "conv") return "";
  std::vector<std::string> steps;
  if (call.has_input(2)) steps.emplace_back("bias");
  if (const std::string& epilogue = call.text("epilogue"); !epilogue.empty())
    steps.push_back(epilogue);
  return fmt::format("{}", fmt::join(steps, ","));
}

std::string TypeName(DType dtype, bool tf32) {
  return tf32 && dtype == DType::kF32 ? "tf32" : std::string(DTypeName(dtype));
}

}  // namespace

std::optional<ConvGeometry> AskedGeometry(const OpDef& op, const OpCall& call) {
  if (op.name == "conv") return ConvGeometryOf(call);
  if (op.name == "conv_grad_input") return GradInputGeometryOf(call);
  if (op.name == "conv_grad_weight") return GradWeightGeometryOf(call);
  return std::nullopt;
}

std::optional<std::string> ConvQuestion(const OpDef& op, const OpCall& call, bool tf32) {
  const std::optional<ConvGeometry> g = AskedGeometry(op, call);
  if (!g) return std::nullopt;
  const SlidingWindow& window = g->window;
  std::string text =
      fmt::format("{} {} {} {}x{}x{} {}x{}x{} stride {} padding {}x{} dilation {}", op.name,
                  TypeName(call.inputs[0].dtype, tf32), DTypeName(call.outputs[0].dtype), g->batch,
                  g->inputs(), JoinAxes(window, &WindowAxis::input), g->outputs(), g->group_inputs,
                  JoinAxes(window, &WindowAxis::kernel), JoinAxes(window, &WindowAxis::stride),
                  JoinAxes(window, &WindowAxis::pad_begin), JoinAxes(window, &WindowAxis::pad_end),
                  JoinAxes(window, &WindowAxis::dilation));
  if (const std::string steps = StepsOf(op, call); !steps.empty()) text += " with " + steps;
  return text;
}

bool CanBeAsked(std::string_view question) {
  if (!question.starts_with("conv")) return false;
  constexpr std::string_view kWith = " with ";
  const size_t with = question.find(kWith);
  if (with == std::string_view::npos) return true;
  const std::string_view steps = question.substr(with + kWith.size());
  return steps == "bias" || steps == "relu" || steps == "bias,relu";
}

const std::string& ConvLibrary() { return Recorded().library; }

std::optional<ConvAnswer> FindConvAnswer(std::string_view device, const std::string& question) {
  const Table& table = Recorded();
  const auto row = table.answers.find(question);
  if (row == table.answers.end()) return std::nullopt;
  for (size_t i = 0; i < table.devices.size(); ++i) {
    if (table.devices[i] == device) return row->second[i];
  }
  return std::nullopt;
}

std::vector<RecordedAnswer> RecordedConvs() { return AnswersOf(Recorded()); }

std::vector<RecordedAnswer> ReadRecorded(std::string_view text) {
  return AnswersOf(ReadTable(text));
}

}  // namespace ridge
