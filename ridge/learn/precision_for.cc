// A product reads a parameter where the parameter reaches an operand by nodes that neither
// multiply matrices nor read inputs or states.  A table that is looked up by an input is none of
// its readers' operands.
#include "ridge/learn/precision_for.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ridge/core/glob.h"
#include "ridge/core/split.h"
#include "ridge/graph/keep_f32.h"
#include "ridge/graph/name_patterns.h"
#include "ridge/graph/passes/rewriter.h"

namespace ridge {
namespace {

constexpr char kOption[] = "--precision-for ";
constexpr size_t kOperands = 2;  // of a product; what follows is added to it

bool Matches(const std::vector<std::string>& names, const std::string& pattern) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return MatchesPattern(name, pattern); });
}

class ProductFinder {
 public:
  explicit ProductFinder(const Graph& graph)
      : graph_(graph), computed_of_parameters_(graph.values().size()) {
    for (size_t v = 0; v < graph.values().size(); ++v)
      computed_of_parameters_[v] = FindComputed(graph.values()[v]);
  }

  // What patterns are compared with: parameters that it reads, or its own name.
  std::vector<std::string> NamesOf(const Node& product) const {
    std::vector<std::string> names;
    bool of_activations = true;
    for (size_t i = 0; i < product.inputs.size(); ++i) {
      std::vector<std::string> read = ParametersBehind(product.inputs[i]);
      if (i < kOperands && !read.empty()) of_activations = false;
      names.insert(names.end(), read.begin(), read.end());
    }
    if (of_activations) names.push_back(graph_.value(product.outputs[0]).name);
    return names;
  }

  // Names that are parameters' to whoever wrote the model: a weight that is dequantized keeps its.
  std::vector<std::string> Parameters() const {
    std::vector<std::string> names;
    for (const ValueInfo& value : graph_.values()) {
      if (IsNamedParameter(value)) names.push_back(value.name);
    }
    return names;
  }

 private:
  bool IsNamedParameter(const ValueInfo& value) const {
    if (value.kind == ValueKind::kParameter) return true;
    return value.kind == ValueKind::kResult &&
           graph_.node(value.producer).op->name == "dequantize_nf4";
  }

  // Values are in topological order.
  bool FindComputed(const ValueInfo& value) const {
    if (value.kind != ValueKind::kResult)
      return value.kind == ValueKind::kParameter || value.kind == ValueKind::kConstant;
    const Node& node = graph_.node(value.producer);
    return !node.op->draws &&
           std::all_of(node.inputs.begin(), node.inputs.end(), [this](ValueId id) {
             return id == kNoValue || computed_of_parameters_[static_cast<size_t>(id)];
           });
  }

  // Of `id`, if it is computed of parameters; behind products is another layer.
  std::vector<std::string> ParametersBehind(ValueId id) const {
    std::vector<std::string> names;
    if (id == kNoValue || !computed_of_parameters_[static_cast<size_t>(id)]) return names;
    std::set<ValueId> seen;
    std::vector<ValueId> open = {id};
    while (!open.empty()) {
      const ValueId at = open.back();
      open.pop_back();
      if (at == kNoValue || !seen.insert(at).second) continue;
      const ValueInfo& value = graph_.value(at);
      if (IsNamedParameter(value)) names.push_back(value.name);
      if (value.kind != ValueKind::kResult) continue;
      const Node& node = graph_.node(value.producer);
      if (!IsKeepable(*node.op)) open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    return names;
  }

  const Graph& graph_;
  std::vector<bool> computed_of_parameters_;  // by value, or of constants
};

// The attribute that marks a product of this operator; nullptr: none.  The first pattern that
// matches decides.
const char* MarkOf(const std::vector<PrecisionFor>& patterns, const std::vector<std::string>& names,
                   const OpDef& op) {
  for (const PrecisionFor& one : patterns) {
    if (!Matches(names, one.pattern)) continue;
    if (one.keeps_f32) return kKeepF32;
    return op.attr_defaults.contains(kNarrowResult) ? kNarrowResult : nullptr;
  }
  return nullptr;
}

Status NothingToKeep(const Graph& graph, const std::string& pattern,
                     const std::vector<std::string>& parameters) {
  std::vector<std::string> matched;
  for (const std::string& name : parameters) {
    if (MatchesPattern(name, pattern)) matched.push_back(name);
  }
  if (matched.empty()) return NoNameMatches(graph.name, kOption, pattern, parameters, "=f32");
  const std::string others =
      matched.size() == 1 ? "" : fmt::format(" and {} more", matched.size() - 1);
  return InvalidArgument(
      fmt::format("{}: {}'{}' matches {}{}, of which no product of f32 reads any. hint: leave the "
                  "pattern out",
                  graph.name, kOption, pattern, matched[0], others));
}

// `part` of `text`.
Result<PrecisionFor> ParseOne(const std::string& text, std::string_view part,
                              const std::string& precision) {
  constexpr const char* kHint = "hint: --precision-for 'head.*=f32'";
  const size_t equals = std::min(part.rfind('='), part.size());
  if (equals == 0 || equals == part.size()) {
    return InvalidArgument(
        fmt::format("{}is '{}': '{}' is not PATTERN=f32. {}", kOption, text, part, kHint));
  }
  const std::string_view type = part.substr(equals + 1);
  const bool known = precision != "auto";  // what the other products read
  if (type == "f32" || (known && type == precision))
    return PrecisionFor{std::string(part.substr(0, equals)), type == "f32"};
  const std::string own = known ? fmt::format(", or {} as --precision has it", precision) : "";
  return InvalidArgument(fmt::format("{}is '{}': '{}' is of type '{}'; it must be f32{}. {}",
                                     kOption, text, part, type, own, kHint));
}

}  // namespace

Result<std::vector<PrecisionFor>> ParsePrecisionFor(const std::vector<std::string>& texts,
                                                    const std::string& precision) {
  std::vector<PrecisionFor> patterns;
  for (const std::string& text : texts) {
    for (const std::string_view part : SplitAt(text, ',')) {
      RIDGE_ASSIGN_OR_RETURN(PrecisionFor one, ParseOne(text, part, precision));
      patterns.push_back(std::move(one));
    }
  }
  return patterns;
}

Result<Graph> WithPrecisionFor(const Graph& forward, const std::vector<PrecisionFor>& patterns) {
  const ProductFinder finder(forward);
  GraphRewriter rewriter(forward);
  std::vector<bool> used(patterns.size(), false);
  RIDGE_RETURN_IF_ERROR(rewriter.Walk([&](const Node& node) -> Status {
    if (!IsF32Product(forward, node)) return rewriter.Copy(node);
    const std::vector<std::string> names = finder.NamesOf(node);
    for (size_t i = 0; i < patterns.size(); ++i)
      used[i] = used[i] || Matches(names, patterns[i].pattern);
    const char* const mark = MarkOf(patterns, names, *node.op);
    if (mark == nullptr) return rewriter.Copy(node);
    AttrMap attrs = node.attrs;
    attrs[mark] = int64_t{1};
    return rewriter.Emit(*node.op, rewriter.Map(node.inputs), std::move(attrs), node.outputs,
                         node.location);
  }));
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (!used[i]) return NothingToKeep(forward, patterns[i].pattern, finder.Parameters());
  }
  return rewriter.Finish();
}

}  // namespace ridge
