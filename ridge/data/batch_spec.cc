#include "ridge/data/batch_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

namespace ridge {
namespace {

constexpr int kNone = -1;

constexpr std::string_view kImageNames[] = {
    "image",          "images",       "x",           "input", "inputs", "data", "features",
    "input_features", "input_values", "pixel_values"};
constexpr std::string_view kLabelNames[] = {"label", "labels", "y", "target", "targets"};
constexpr std::string_view kTokenNames[] = {"input_ids", "tokens", "token_ids", "ids"};
constexpr std::string_view kMaskNames[] = {"attention_mask", "mask"};

bool Holds(std::span<const std::string_view> names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The names that mean the same as `name`.
std::span<const std::string_view> GroupOf(const std::string& name) {
  if (Holds(kImageNames, name)) return kImageNames;
  if (Holds(kLabelNames, name)) return kLabelNames;
  if (Holds(kTokenNames, name)) return kTokenNames;
  if (Holds(kMaskNames, name)) return kMaskNames;
  return {};
}

int FindByName(const InputSpec& input, const Source& source) {
  if (!input.field.empty()) return source.FindField(input.field);
  const int same = source.FindField(input.name);
  if (same != kNone) return same;
  for (std::string_view other : GroupOf(input.name)) {
    const int field = source.FindField(std::string(other));
    if (field != kNone) return field;
  }
  return kNone;
}

bool CanBecome(const Field& field, const InputSpec& input) {
  return PlanConversion(field.type, input.type, field.normalization).ok();
}

// The fields that no input has, and the inputs that have none.
struct Unmatched {
  std::vector<size_t> inputs;
  std::vector<size_t> fields;
};

Unmatched FindUnmatched(const std::vector<int>& matches, const BatchSpec& spec,
                        size_t field_count) {
  Unmatched unmatched;
  for (size_t i = 0; i < matches.size(); ++i) {
    if (matches[i] == kNone && spec.inputs[i].field.empty()) unmatched.inputs.push_back(i);
  }
  for (size_t f = 0; f < field_count; ++f) {
    if (std::find(matches.begin(), matches.end(), static_cast<int>(f)) == matches.end())
      unmatched.fields.push_back(f);
  }
  return unmatched;
}

void MatchByType(const BatchSpec& spec, const Source& source, std::vector<int>& matches) {
  const Unmatched unmatched = FindUnmatched(matches, spec, source.fields().size());
  for (size_t i : unmatched.inputs) {
    std::vector<size_t> candidates;
    for (size_t f : unmatched.fields) {
      if (CanBecome(source.fields()[f], spec.inputs[i])) candidates.push_back(f);
    }
    if (candidates.size() != 1) continue;
    const Field& field = source.fields()[candidates[0]];
    const auto takers =
        std::count_if(unmatched.inputs.begin(), unmatched.inputs.end(),
                      [&](size_t other) { return CanBecome(field, spec.inputs[other]); });
    if (takers == 1) matches[i] = static_cast<int>(candidates[0]);
  }
}

struct TableRow {
  std::string input;
  std::string field;
  std::string verdict;
};

TableRow MakeRow(const InputSpec& input, int match, const Source& source) {
  TableRow row{fmt::format("{} {}", input.name, TypeToString(input.type)), "-", ""};
  if (match == kNone) {
    row.verdict = input.field.empty() ? "no field of this name or, alone, of this type"
                                      : fmt::format("there is no field '{}'", input.field);
    return row;
  }
  const Field& field = source.fields()[static_cast<size_t>(match)];
  row.field = fmt::format("{} {}", field.name, TypeToString(field.type));
  const auto conversion = PlanConversion(field.type, input.type, field.normalization);
  row.verdict = conversion.ok() ? "ok" : conversion.status().message();
  return row;
}

Status Mismatch(const BatchSpec& spec, const Source& source, const std::vector<int>& matches) {
  std::vector<TableRow> rows = {{"input", "field", ""}};
  for (size_t i = 0; i < matches.size(); ++i)
    rows.push_back(MakeRow(spec.inputs[i], matches[i], source));
  size_t input_width = 0;
  size_t field_width = 0;
  for (const TableRow& row : rows) {
    input_width = std::max(input_width, row.input.size());
    field_width = std::max(field_width, row.field.size());
  }
  std::string text = source.name() + ": its fields cannot fill the model's inputs:";
  for (const TableRow& row : rows) {
    const std::string line = fmt::format("\n  {:{}}  {:{}}  {}", row.input, input_width, row.field,
                                         field_width, row.verdict);
    text += line.substr(0, line.find_last_not_of(' ') + 1);
  }
  text += "\n  the data's fields:";
  for (const Field& field : source.fields())
    text += fmt::format(" {} {}", field.name, TypeToString(field.type));
  return Status(ErrorCode::kInvalidData, text);
}

}  // namespace

int64_t BatchSpec::bytes(int64_t batch) const {
  int64_t bytes = 0;
  for (const InputSpec& input : inputs) bytes += batch * input.type.bytes();
  return bytes;
}

const Field* FindFieldByName(const std::string& input, const std::vector<Field>& fields) {
  const auto find = [&](std::string_view name) -> const Field* {
    const auto at = std::find_if(fields.begin(), fields.end(),
                                 [&](const Field& field) { return field.name == name; });
    return at == fields.end() ? nullptr : &*at;
  };
  if (const Field* same = find(input)) return same;
  for (std::string_view other : GroupOf(input)) {
    if (const Field* field = find(other)) return field;
  }
  return nullptr;
}

Result<std::vector<FieldMap>> MatchFields(const BatchSpec& spec, const Source& source) {
  std::vector<int> matches;
  for (const InputSpec& input : spec.inputs) matches.push_back(FindByName(input, source));
  MatchByType(spec, source, matches);
  std::vector<FieldMap> maps;
  for (size_t i = 0; i < matches.size(); ++i) {
    if (matches[i] == kNone) return Mismatch(spec, source, matches);
    const Field& field = source.fields()[static_cast<size_t>(matches[i])];
    const auto conversion = PlanConversion(field.type, spec.inputs[i].type, field.normalization);
    if (!conversion.ok()) return Mismatch(spec, source, matches);
    maps.push_back({matches[i], *conversion});
  }
  return maps;
}

}  // namespace ridge
