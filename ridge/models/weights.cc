// A first pass finds for each variable the tensors it comes from and collects everything that is
// wrong, so that one run shows the whole list; only then is anything read.
#include "ridge/models/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "ridge/core/glob.h"
#include "ridge/core/rounding.h"
#include "ridge/core/safetensors.h"

namespace ridge {
namespace {

constexpr size_t kMostLines = 12;  // of one sort in the table

// A variable and the tensors of the file that it is made of.
struct Assignment {
  ValueId variable = kNoValue;
  std::vector<const SafetensorsEntry*> from;
  WeightForm form = WeightForm::kSame;
};

bool MatchesAny(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return MatchesPattern(name, pattern); });
}

// What * stands for when `name` has the form of `pattern`.
std::optional<std::string> MatchStar(const std::string& name, const std::string& pattern) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) {
    return name == pattern ? std::optional<std::string>("") : std::nullopt;
  }
  const std::string head = pattern.substr(0, star), tail = pattern.substr(star + 1);
  if (name.size() < head.size() + tail.size()) return std::nullopt;
  if (!name.starts_with(head) || !name.ends_with(tail)) return std::nullopt;
  return name.substr(head.size(), name.size() - head.size() - tail.size());
}

std::string FillStar(std::string pattern, const std::string& text) {
  const size_t star = pattern.find('*');
  return star == std::string::npos ? pattern : pattern.replace(star, 1, text);
}

bool IsWanted(const ValueInfo& info) {
  return info.kind == ValueKind::kParameter ||
         (info.kind == ValueKind::kState && info.role == ValueRole::kStatistic);
}

class Finder {
 public:
  Finder(const SafetensorsFile& file, const WeightNames& names) : file_(file), names_(names) {}

  // Nothing in `from` when the file has no such tensor.
  Assignment Find(const std::string& ours) const {
    Assignment found;
    if (const SafetensorsEntry* own = Entry(ours)) {
      found.from = {own};
      return found;
    }
    for (const WeightRule& rule : names_.rules) {
      const std::optional<std::string> star = MatchStar(ours, rule.ours);
      if (!star) continue;
      found.from = Parts(rule, *star);
      found.form = rule.form;
      if (!found.from.empty()) return found;
    }
    return found;
  }

 private:
  std::vector<const SafetensorsEntry*> Parts(const WeightRule& rule,
                                             const std::string& star) const {
    std::vector<const SafetensorsEntry*> parts;
    for (const std::string& theirs : rule.theirs) {
      const SafetensorsEntry* entry = Entry(FillStar(theirs, star));
      if (entry == nullptr) return {};
      parts.push_back(entry);
    }
    return parts;
  }

  const SafetensorsEntry* Entry(const std::string& name) const {
    if (const SafetensorsEntry* entry = file_.Find(name)) return entry;
    if (names_.prefix.empty() || !name.starts_with(names_.prefix)) return nullptr;
    return file_.Find(name.substr(names_.prefix.size()));
  }

  const SafetensorsFile& file_;
  const WeightNames& names_;
};

// Whether `part` is `whole` but for the extent of dimension 0.
bool SameRows(const Dims& part, const Dims& whole) {
  return !part.empty() && part.size() == whole.size() &&
         std::equal(part.begin() + 1, part.end(), whole.begin() + 1);
}

bool JoinTo(const std::vector<const SafetensorsEntry*>& parts, const Dims& dims) {
  int64_t missing = dims.empty() ? 0 : dims[0];
  for (const SafetensorsEntry* part : parts) {
    if (!SameRows(part->type.dims, dims) || part->type.dims[0] > missing) return false;
    missing -= part->type.dims[0];
  }
  return missing == 0;
}

bool Fits(const Assignment& assignment, const TensorType& ours) {
  for (const SafetensorsEntry* part : assignment.from) {
    if (part->type.dtype != ours.dtype && !(IsFloat(part->type.dtype) && IsFloat(ours.dtype)))
      return false;
  }
  if (assignment.from.size() > 1) return JoinTo(assignment.from, ours.dims);
  const Dims& dims = assignment.from[0]->type.dims;
  switch (assignment.form) {
    case WeightForm::kSame:
      return dims == ours.dims;
    case WeightForm::kTransposed:
      return dims.size() == 2 && Dims{dims[1], dims[0]} == ours.dims;
    case WeightForm::kFirstRows:
      return SameRows(dims, ours.dims) && dims[0] >= ours.dims[0];
  }
  return false;
}

// Parts one after the other; of the last only what fits.
class JoinedParts : public TensorSource {
 public:
  explicit JoinedParts(std::vector<Tensor> parts) : parts_(std::move(parts)) {}

  Status Read(int64_t begin, int64_t end, void* to) const override {
    int64_t start = 0;  // of a part
    for (const Tensor& part : parts_) {
      const int64_t from = std::max(begin, start), until = std::min(end, start + part.elements());
      const int64_t offset = (from - begin) * BytesPerElement(part.type().dtype);
      if (from < until) {
        RIDGE_RETURN_IF_ERROR(
            part.Read(from - start, until - start, static_cast<char*>(to) + offset));
      }
      start += part.elements();
    }
    return Status();
  }

 private:
  std::vector<Tensor> parts_;
};

class TransposedMatrix : public TensorSource {
 public:
  explicit TransposedMatrix(Tensor matrix) : matrix_(std::move(matrix)) {}

  // Row r of the matrix has element (c, r) of the result for consecutive c.
  Status Read(int64_t begin, int64_t end, void* to) const override {
    if (begin >= end) return Status();
    const int64_t rows = matrix_.type().dims[0], columns = matrix_.type().dims[1];
    const int64_t width = BytesPerElement(matrix_.type().dtype);
    std::vector<char> part(static_cast<size_t>((CeilDiv(end - begin, rows) + 1) * width));
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t first = CeilDiv(std::max<int64_t>(begin - r, 0), rows);
      const int64_t behind = CeilDiv(std::max<int64_t>(end - r, 0), rows);
      if (first >= behind) continue;
      RIDGE_RETURN_IF_ERROR(matrix_.Read(r * columns + first, r * columns + behind, part.data()));
      for (int64_t c = first; c < behind; ++c) {
        std::memcpy(static_cast<char*>(to) + (c * rows + r - begin) * width,
                    part.data() + (c - first) * width, static_cast<size_t>(width));
      }
    }
    return Status();
  }

 private:
  Tensor matrix_;
};

// Large ones stay in the file.  REQUIRES: Fits(assignment, type).
Result<Tensor> Read(const SafetensorsFile& file, const Assignment& assignment,
                    const TensorType& type) {
  std::vector<Tensor> parts;
  for (const SafetensorsEntry* entry : assignment.from) {
    RIDGE_ASSIGN_OR_RETURN(const Tensor part, file.Refer(*entry));
    parts.push_back(Converted(part, type.dtype));
  }
  const bool turned = assignment.form == WeightForm::kTransposed && parts.size() == 1;
  Tensor tensor = parts[0];
  if (turned) {
    tensor = Tensor(type, std::make_shared<TransposedMatrix>(parts[0]));
  } else if (tensor.type() != type) {
    tensor = Tensor(type, std::make_shared<JoinedParts>(std::move(parts)));
  }
  return type.bytes() < kStaysInFileFrom ? tensor.Load() : tensor;
}

std::string SourceText(const Assignment& assignment) {
  std::string names, types;
  for (const SafetensorsEntry* entry : assignment.from) {
    names += (names.empty() ? "" : " + ") + entry->name;
    types += (types.empty() ? "" : " + ") + TypeToString(entry->type);
  }
  if (assignment.form == WeightForm::kTransposed) types += " transposed";
  if (assignment.form == WeightForm::kFirstRows) types += " (its first rows)";
  return fmt::format("{} {}", names, types);
}

// One file's tensors put in a graph's variables.
class Loader {
 public:
  Loader(const std::string& path, const SafetensorsFile& file, const WeightNames& names,
         const std::vector<std::string>& skip, Graph& graph)
      : path_(path), file_(file), names_(names), skip_(skip), graph_(graph) {}

  Result<WeightsReport> Load() {
    AssignAll();
    FindUnexpected();
    RIDGE_RETURN_IF_ERROR(CheckPatterns());
    RIDGE_RETURN_IF_ERROR(Refusal());
    for (const Assignment& assignment : assignments_) {
      ValueInfo& variable = graph_.mutable_value(assignment.variable);
      RIDGE_ASSIGN_OR_RETURN(Tensor tensor, Read(file_, assignment, variable.type));
      variable.init = Init::FromTensor(std::move(tensor));
    }
    report_.loaded = static_cast<int64_t>(assignments_.size());
    return std::move(report_);
  }

 private:
  struct Line {
    std::string name, text;
  };

  void AssignAll() {
    const Finder finder(file_, names_);
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values().size()); ++id) {
      const ValueInfo& info = graph_.value(id);
      if (!IsWanted(info)) continue;
      if (MatchesAny(info.name, skip_)) {
        report_.kept.push_back(info.name);
        for (const SafetensorsEntry* entry : finder.Find(info.name).from) skipped_.insert(entry);
        continue;
      }
      Assignment found = finder.Find(info.name);
      found.variable = id;
      Assign(info, std::move(found));
    }
  }

  void Assign(const ValueInfo& info, Assignment found) {
    if (found.from.empty()) {
      missing_.push_back({info.name, TypeToString(info.type)});
      return;
    }
    for (const SafetensorsEntry* entry : found.from) {
      const bool again = !used_.insert(entry).second;
      if (again) report_.copies.push_back(info.name + " from " + entry->name);
    }
    if (!Fits(found, info.type)) {
      misfits_.push_back({info.name, fmt::format("{}; the file has {}", TypeToString(info.type),
                                                 SourceText(found))});
      return;
    }
    assignments_.push_back(std::move(found));
  }

  void FindUnexpected() {
    for (const SafetensorsEntry& entry : file_.entries()) {
      if (used_.contains(&entry) || MatchesAny(entry.name, names_.unused)) continue;
      if (skipped_.contains(&entry) || MatchesAny(entry.name, skip_)) {
        report_.passed.push_back(entry.name);
      } else {
        unexpected_.push_back({entry.name, TypeToString(entry.type)});
      }
    }
  }

  // A pattern with a slip in it would leave out nothing, silently.
  Status CheckPatterns() const {
    for (const std::string& pattern : skip_) {
      const auto fits = [&](const std::string& name) { return MatchesPattern(name, pattern); };
      if (std::any_of(report_.kept.begin(), report_.kept.end(), fits) ||
          std::any_of(report_.passed.begin(), report_.passed.end(), fits))
        continue;
      return Status(ErrorCode::kInvalidArgument,
                    fmt::format("--weights-skip '{}' fits no tensor of the model '{}' nor of {}",
                                pattern, graph_.name, path_));
    }
    return Status();
  }

  static void AddLines(const char* title, const std::vector<Line>& lines, size_t width,
                       std::string& text) {
    if (lines.empty()) return;
    text += fmt::format("\n  {}:", title);
    for (size_t i = 0; i < std::min(lines.size(), kMostLines); ++i)
      text += fmt::format("\n    {:{}}  {}", lines[i].name, width, lines[i].text);
    if (lines.size() > kMostLines)
      text += fmt::format("\n    and {} more", lines.size() - kMostLines);
  }

  std::string Hint() const {
    const Line& example = !missing_.empty()   ? missing_[0]
                          : !misfits_.empty() ? misfits_[0]
                                              : unexpected_[0];
    const size_t dot = example.name.rfind('.');
    const std::string pattern =
        dot == std::string::npos ? example.name : example.name.substr(0, dot) + ".*";
    return fmt::format(
        "--weights-skip '{}' leaves tensors out; the model's keep their starting values", pattern);
  }

  Status Refusal() const {
    if (missing_.empty() && misfits_.empty() && unexpected_.empty()) return Status();
    size_t width = 0;
    for (const auto* lines : {&missing_, &misfits_, &unexpected_}) {
      for (size_t i = 0; i < std::min(lines->size(), kMostLines); ++i)
        width = std::max(width, (*lines)[i].name.size());
    }
    std::string text =
        fmt::format("{}: not the weights of '{}': {} of its {} tensors fit", path_, graph_.name,
                    assignments_.size(), assignments_.size() + missing_.size() + misfits_.size());
    AddLines("missing in the file", missing_, width, text);
    AddLines("of another shape or type", misfits_, width, text);
    AddLines("in the file, but not in the model", unexpected_, width, text);
    text +=
        assignments_.empty() ? "\n  hint: is it a file of another model?" : "\n  hint: " + Hint();
    return Status(ErrorCode::kInvalidData, text);
  }

  const std::string& path_;
  const SafetensorsFile& file_;
  const WeightNames& names_;
  const std::vector<std::string>& skip_;
  Graph& graph_;
  std::vector<Assignment> assignments_;
  std::set<const SafetensorsEntry*> used_, skipped_;  // looked up only
  std::vector<Line> missing_, misfits_, unexpected_;
  WeightsReport report_;
};

}  // namespace

Result<WeightsReport> LoadWeightsFile(const std::string& path, const WeightNames& names,
                                      const std::vector<std::string>& skip, Graph& graph) {
  RIDGE_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  return Loader(path, file, names, skip, graph).Load();
}

}  // namespace ridge
