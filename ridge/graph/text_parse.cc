// One pass over the lines; each statement goes straight into the Graph, whose types are inferred
// as it grows, so an error is found at its line.  Only for an unknown name the rest of the text is
// searched, to distinguish a use before the definition from an undefined name.
#include "ridge/graph/text_parse.h"

#include <fmt/format.h>

#include <map>
#include <unordered_map>

#include "ridge/core/nf4.h"
#include "ridge/graph/suggest.h"
#include "ridge/graph/text.h"
#include "ridge/graph/text_attr.h"

namespace ridge {
namespace {

using Kind = Token::Kind;

// The extent that an open dimension has until it is bound: not 0 or 1, which broadcast.
constexpr int64_t kOpenExtent = 2;

class GraphReader {
 public:
  GraphReader(TokenReader& reader, int depth) : reader_(reader), depth_(depth) {}

  Result<Graph> Read() {
    RIDGE_RETURN_IF_ERROR(ReadHeader());
    while (!AtEnd()) {
      RIDGE_RETURN_IF_ERROR(ReadStatement());
      RIDGE_RETURN_IF_ERROR(EndStatement());
    }
    return std::move(graph_);
  }

 private:
  bool AtEnd() const {
    return reader_.peek().kind == Kind::kEnd || (depth_ > 0 && reader_.at_symbol('}'));
  }

  Status ReadHeader() {
    reader_.SkipNewlines();
    if (!reader_.at_name("graph")) {
      return reader_.Error("expected 'graph NAME', found " + DescribeToken(reader_.peek()));
    }
    reader_.Take();
    const bool named = reader_.peek().kind == Kind::kName || reader_.peek().kind == Kind::kString;
    if (named) {
      RIDGE_ASSIGN_OR_RETURN(graph_.name, reader_.ExpectName("the graph's name"));
    }
    return EndStatement();
  }

  Status EndStatement() {
    if (reader_.peek().kind != Kind::kNewline && !AtEnd()) {
      return reader_.Error("expected the end of the line, found " + DescribeToken(reader_.peek()));
    }
    reader_.SkipNewlines();
    return Status();
  }

  Status ReadStatement() {
    line_ = reader_.peek().line;
    defining_.clear();
    const Token first = reader_.peek();
    RIDGE_ASSIGN_OR_RETURN(std::string name,
                           reader_.ExpectName("a statement, such as y = relu(x)"));
    const bool defines = reader_.at_symbol('=') || reader_.at_symbol(',');
    if (!defines && first.kind == Kind::kName) {
      if (name == "output") return ReadOutput();
      if (name == "update") return ReadUpdate();
      if (name == "graph") return reader_.ErrorAt(line_, "a text holds one graph");
    }
    return ReadDefinition(std::move(name));
  }

  // output NAME  |  output NAME = VALUE
  Status ReadOutput() {
    RIDGE_ASSIGN_OR_RETURN(std::string name, reader_.ExpectName("an output's name"));
    std::string value_name = name;
    if (reader_.TakeSymbol('=')) {
      RIDGE_ASSIGN_OR_RETURN(value_name, reader_.ExpectName("the value of the output"));
    }
    RIDGE_ASSIGN_OR_RETURN(const ValueId value, Find(value_name));
    if (!output_lines_.emplace(name, line_).second) {
      return reader_.ErrorAt(line_, fmt::format("the output '{}' is given twice, first at line {}",
                                                name, output_lines_[name]));
    }
    graph_.AddOutput(std::move(name), value);
    return Status();
  }

  // update VARIABLE = VALUE
  Status ReadUpdate() {
    RIDGE_ASSIGN_OR_RETURN(const std::string name, reader_.ExpectName("a variable's name"));
    RIDGE_ASSIGN_OR_RETURN(const ValueId variable, Find(name));
    RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol('=', "after the variable of an update"));
    RIDGE_ASSIGN_OR_RETURN(const std::string value_name, reader_.ExpectName("a value"));
    RIDGE_ASSIGN_OR_RETURN(const ValueId value, Find(value_name));
    const ValueKind kind = graph_.value(variable).kind;
    if (kind != ValueKind::kParameter && kind != ValueKind::kState) {
      return reader_.ErrorAt(
          line_, fmt::format("'{}' is no variable: only a parameter or a state is updated", name));
    }
    if (!(graph_.type(variable) == graph_.type(value))) {
      return reader_.ErrorAt(
          line_, fmt::format("the update of '{}' changes its type: it is {}, '{}' is {}", name,
                             TypeToString(graph_.type(variable)), value_name,
                             TypeToString(graph_.type(value))));
    }
    if (!update_lines_.emplace(variable, line_).second) {
      return reader_.ErrorAt(line_, fmt::format("'{}' is updated twice, first at line {}", name,
                                                update_lines_[variable]));
    }
    graph_.AddUpdate(variable, value);
    return Status();
  }

  Status ReadDefinition(std::string first) {
    std::vector<std::string> names{std::move(first)};
    while (reader_.TakeSymbol(',')) {
      RIDGE_ASSIGN_OR_RETURN(std::string name, reader_.ExpectName("the name of an output"));
      names.push_back(std::move(name));
    }
    RIDGE_RETURN_IF_ERROR(CheckFree(names));
    defining_ = names;
    RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol('=', "after the name that is defined"));
    const Token what = reader_.peek();
    RIDGE_ASSIGN_OR_RETURN(
        const std::string word,
        reader_.ExpectName("input, parameter, state, constant or an operator's name"));
    if (reader_.at_symbol('(')) {
      RIDGE_RETURN_IF_ERROR(ReadCall(word, what.line, names));
    } else {
      RIDGE_RETURN_IF_ERROR(ReadLeaf(word, names));
    }
    for (const std::string& name : names) lines_.emplace(name, line_);
    return Status();
  }

  Status CheckFree(const std::vector<std::string>& names) {
    for (size_t i = 0; i < names.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (names[i] == names[k]) {
          return reader_.ErrorAt(line_, fmt::format("'{}' stands twice before the '='", names[i]));
        }
      }
      if (graph_.FindValue(names[i]) == kNoValue) continue;
      const auto line = lines_.find(names[i]);
      return reader_.ErrorAt(
          line_, line == lines_.end()
                     ? fmt::format("'{}' is the name of an earlier output that has none in the "
                                   "text. hint: choose another name",
                                   names[i])
                     : fmt::format("'{}' is defined at line {} already; a value is written once",
                                   names[i], line->second));
    }
    return Status();
  }

  Status ReadLeaf(const std::string& word, const std::vector<std::string>& names) {
    const bool known =
        word == "input" || word == "parameter" || word == "state" || word == "constant";
    if (!known) {
      return reader_.ErrorAt(
          line_, fmt::format("expected input, parameter, state, constant or a call such as "
                             "relu(x) after '=', found '{}'{}",
                             word, DidYouMean(word, {"input", "parameter", "state", "constant"})));
    }
    if (names.size() > 1) {
      return reader_.ErrorAt(line_,
                             fmt::format("{} defines one value, not {}", word, names.size()));
    }
    if (word == "input") return ReadInput(names[0]);
    if (word == "constant") return ReadConstant(names[0]);
    return ReadVariable(word == "parameter" ? ValueKind::kParameter : ValueKind::kState, names[0]);
  }

  Status ReadInput(const std::string& name) {
    RIDGE_ASSIGN_OR_RETURN(const DType dtype, ReadDType(reader_));
    RIDGE_ASSIGN_OR_RETURN(const std::vector<TextDim> dims, ReadDims(reader_));
    TensorType type{dtype, {}};
    std::vector<std::string> dim_names;
    bool any = false;
    for (const TextDim& dim : dims) {
      RIDGE_ASSIGN_OR_RETURN(const TextDim bound, BindDim(dim));
      type.dims.push_back(bound.extent.value_or(kOpenExtent));
      dim_names.push_back(bound.extent || bound.name.empty() ? bound.name : bound.name + "?");
      any = any || !bound.name.empty();
    }
    if (Status status = CheckDims(type.dims); !status.ok()) {
      return reader_.ErrorAt(line_, fmt::format("input '{}': {}", name, status.message()));
    }
    if (!any) dim_names.clear();
    graph_.AddInput(name, std::move(type), std::move(dim_names));
    return Status();
  }

  // A name means one extent in the whole graph; the first use decides.
  Result<TextDim> BindDim(TextDim dim) {
    if (dim.name.empty()) return dim;
    if (dim.name.ends_with('?')) {
      return reader_.ErrorAt(line_, "the name of a dimension may not end in '?'");
    }
    const auto [known, fresh] = dims_.emplace(dim.name, std::pair(dim.extent, line_));
    if (fresh || dim.extent == known->second.first) return dim;
    if (!dim.extent) return TextDim{dim.name, known->second.first};
    const auto& [extent, line] = known->second;
    const std::string was = extent ? fmt::format("is {}", *extent) : "has no extent";
    return reader_.ErrorAt(line_, fmt::format("the dimension '{}' {} at line {} and {} here",
                                              dim.name, was, line, *dim.extent));
  }

  Status ReadConstant(const std::string& name) {
    RIDGE_ASSIGN_OR_RETURN(const TensorType type, ReadType(reader_));
    RIDGE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensorValues(reader_, type));
    graph_.AddConstant(name, std::move(tensor));
    return Status();
  }

  // TYPE init=... frozen=1 role=...
  Status ReadVariable(ValueKind kind, const std::string& name) {
    RIDGE_ASSIGN_OR_RETURN(const TensorType type, ReadType(reader_));
    const ValueId id = graph_.AddVariable(kind, name, type, Init::Zeros());
    while (reader_.peek().kind == Kind::kName) {
      const std::string option(reader_.Take().text);
      RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol('=', "after " + option));
      if (option == "init") {
        RIDGE_ASSIGN_OR_RETURN(graph_.mutable_value(id).init, ReadInit(type));
      } else if (option == "frozen" && kind == ValueKind::kParameter) {
        RIDGE_ASSIGN_OR_RETURN(const int64_t frozen, ReadInteger(reader_, "0 or 1"));
        graph_.mutable_value(id).trainable = frozen == 0;
      } else if (option == "role") {
        RIDGE_ASSIGN_OR_RETURN(graph_.mutable_value(id).role, ReadRole());
      } else {
        return reader_.ErrorAt(line_,
                               fmt::format("'{}' is no option of a {}; known: init, {}role", option,
                                           kind == ValueKind::kParameter ? "parameter" : "state",
                                           kind == ValueKind::kParameter ? "frozen, " : ""));
      }
    }
    return Status();
  }

  Result<Init> ReadInit(const TensorType& type) {
    RIDGE_ASSIGN_OR_RETURN(const std::string word, reader_.ExpectName("how the variable starts"));
    if (word == "zeros") return Init::Zeros();
    if (word == "base64") {
      RIDGE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensorBase64(reader_, type));
      return Init::FromTensor(std::move(tensor));
    }
    const bool known = word == "values" || word == "constant" || word == "uniform" ||
                       word == "normal" || word == "nf4_codes" || word == "nf4_scales";
    if (!known) {
      return reader_.ErrorAt(
          line_, fmt::format("a variable can't start as '{}'; known: zeros, constant(v), "
                             "uniform(bound), normal(deviation), values(...), base64(\"...\"), "
                             "nf4_codes(name type start), nf4_scales(name type start)",
                             word));
    }
    RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol('(', "after " + word));
    if (word.starts_with("nf4_")) return ReadNf4Init(word, type);
    if (word == "values") {
      RIDGE_ASSIGN_OR_RETURN(Tensor tensor, ReadTensorList(reader_, type, ')'));
      return Init::FromTensor(std::move(tensor));
    }
    RIDGE_ASSIGN_OR_RETURN(const double scale, ReadNumber(reader_, "a number"));
    RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol(')', "after the number"));
    if (word == "constant") return Init::Constant(scale);
    return word == "uniform" ? Init::Uniform(scale) : Init::Normal(scale);
  }

  // NAME TYPE START), of the variable that is kept in 4 bits a number; no such variable itself.
  Result<Init> ReadNf4Init(const std::string& word, const TensorType& type) {
    auto source = std::make_shared<ValueInfo>();
    source->kind = ValueKind::kParameter;
    RIDGE_ASSIGN_OR_RETURN(source->name, reader_.ExpectName("the quantized variable's name"));
    RIDGE_ASSIGN_OR_RETURN(source->type, ReadType(reader_));
    if (reader_.peek().text.starts_with("nf4_"))
      return reader_.ErrorAt(line_, word + " of another nf4_codes or nf4_scales");
    RIDGE_ASSIGN_OR_RETURN(source->init, ReadInit(source->type));
    RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol(')', "after how it starts"));
    const bool codes = word == "nf4_codes";
    const int64_t count = source->type.elements();
    const TensorType wanted = codes ? TensorType{DType::kU8, {Nf4CodeBytes(count)}}
                                    : TensorType{DType::kBF16, {Nf4ScaleCount(count)}};
    if (!IsFloat(source->type.dtype) || type != wanted) {
      return reader_.ErrorAt(
          line_, fmt::format("the variable is {}; {} of {} are {}", TypeToString(type), word,
                             TypeToString(source->type), TypeToString(wanted)));
    }
    return codes ? Init::Nf4Codes(std::move(source)) : Init::Nf4Scales(std::move(source));
  }

  Result<ValueRole> ReadRole() {
    const int line = reader_.peek().line;
    RIDGE_ASSIGN_OR_RETURN(const std::string word, reader_.ExpectName("a role"));
    if (word == "none") return ValueRole::kNone;
    if (word == "gradient") return ValueRole::kGradient;
    if (word == "optimizer") return ValueRole::kOptimizer;
    if (word == "statistic") return ValueRole::kStatistic;
    if (word == "recomputed") return ValueRole::kRecomputed;
    return reader_.ErrorAt(
        line,
        fmt::format("unknown role '{}'; known: none, gradient, optimizer, statistic, recomputed",
                    word));
  }

  Status ReadCall(const std::string& op_name, int line, const std::vector<std::string>& names) {
    const OpDef* op = FindOp(op_name);
    if (op == nullptr) {
      std::vector<std::string> known;
      for (const OpDef& def : AllOps()) known.push_back(def.name);
      return reader_.ErrorAt(
          line, fmt::format("unknown operator '{}'{}", op_name, DidYouMean(op_name, known)));
    }
    RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol('(', "after the operator"));
    std::vector<ValueId> inputs;
    AttrMap attrs;
    RIDGE_RETURN_IF_ERROR(ReadArguments(inputs, attrs));
    Result<NodeId> node =
        graph_.AddNode(*op, std::move(inputs), std::move(attrs), names, NodeLocation());
    if (!node.ok()) return AddLine(node.status());
    const std::vector<ValueId>& outputs = graph_.node(*node).outputs;
    if (names.size() > outputs.size()) {
      return reader_.ErrorAt(line_, fmt::format("{} has {} here, {} names stand before the '='",
                                                op_name, Outputs(outputs.size()), names.size()));
    }
    return ReadRoles(outputs);
  }

  static std::string Outputs(size_t count) {
    return fmt::format("{} output{}", count, count == 1 ? "" : "s");
  }

  // x, _, name=value)
  Status ReadArguments(std::vector<ValueId>& inputs, AttrMap& attrs) {
    bool first = true;
    while (!reader_.TakeSymbol(')')) {
      if (!first) RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol(',', "or ')' in a call"));
      first = false;
      if (reader_.at_name("_")) {
        reader_.Take();
        inputs.push_back(kNoValue);
        continue;
      }
      const int line = reader_.peek().line;
      RIDGE_ASSIGN_OR_RETURN(const std::string name,
                             reader_.ExpectName("an input or an attribute"));
      if (reader_.TakeSymbol('=')) {
        RIDGE_ASSIGN_OR_RETURN(Attr value, ReadAttr(reader_, depth_));
        if (!attrs.emplace(name, std::move(value)).second) {
          return reader_.ErrorAt(line, fmt::format("the attribute '{}' is given twice", name));
        }
      } else if (!attrs.empty()) {
        return reader_.ErrorAt(line,
                               fmt::format("the input '{}' stands after an attribute; inputs come "
                                           "first",
                                           name));
      } else {
        RIDGE_ASSIGN_OR_RETURN(const ValueId value, Find(name));
        inputs.push_back(value);
      }
    }
    return Status();
  }

  // role=gradient, or one for each output: role=none,gradient.
  Status ReadRoles(const std::vector<ValueId>& outputs) {
    if (!reader_.at_name("role")) return Status();
    reader_.Take();
    RIDGE_RETURN_IF_ERROR(reader_.ExpectSymbol('=', "after role"));
    size_t count = 0;
    do {
      RIDGE_ASSIGN_OR_RETURN(const ValueRole role, ReadRole());
      if (count < outputs.size()) graph_.mutable_value(outputs[count]).role = role;
      ++count;
    } while (reader_.TakeSymbol(','));
    if (count == outputs.size()) return Status();
    return reader_.ErrorAt(
        line_, fmt::format("{} roles are given for {}", count, Outputs(outputs.size())));
  }

  std::string NodeLocation() const { return fmt::format("line {}", line_); }

  // "relu 'y' (line 8): ..." -> "net.ridge:8: relu 'y': ..."
  Status AddLine(const Status& status) const {
    std::string text = status.message();
    const std::string location = " (" + NodeLocation() + ")";
    if (const size_t at = text.find(location); at != std::string::npos) {
      text.erase(at, location.size());
    }
    return Status(status.code(), reader_.ErrorAt(line_, text).message());
  }

  Result<ValueId> Find(const std::string& name) {
    const ValueId id = graph_.FindValue(name);
    if (id != kNoValue) return id;
    return UnknownName(name);
  }

  Status UnknownName(const std::string& name) {
    const int defined = FindDefinition(name);
    if (defined == line_) {
      return reader_.ErrorAt(
          line_, fmt::format("'{}' is used in its own definition; a graph has no cycles. hint: a "
                             "state keeps a value from step to step, with update",
                             name));
    }
    if (defined > 0) {
      return reader_.ErrorAt(
          line_, fmt::format("'{}' is used at line {} but defined at line {}: a graph has no "
                             "cycles, and a value is defined before it is used. hint: move line "
                             "{} up, or keep the value from step to step in a state, with update",
                             name, line_, defined, defined));
    }
    std::vector<std::string> known;
    for (const ValueInfo& info : graph_.values()) known.push_back(info.name);
    return reader_.ErrorAt(line_,
                           fmt::format("'{}' is not defined{}", name, DidYouMean(name, known)));
  }

  // The line at or after this one that defines `name`, or 0.
  int FindDefinition(const std::string& name) const {
    for (const std::string& own : defining_) {
      if (own == name) return line_;
    }
    TokenReader rest = reader_;
    rest.SkipLine();
    while (rest.peek().kind == Kind::kNewline) {
      rest.SkipNewlines();
      const int line = rest.peek().line;
      bool found = false;
      while (rest.peek().kind == Kind::kName || rest.peek().kind == Kind::kString) {
        found = rest.Take().text == name || found;
        if (!rest.TakeSymbol(',')) break;
      }
      if (found && rest.at_symbol('=')) return line;
      rest.SkipLine();
    }
    return 0;
  }

  TokenReader& reader_;
  int depth_;
  Graph graph_;
  int line_ = 1;                       // of the statement
  std::vector<std::string> defining_;  // names before the '=' of the statement
  std::unordered_map<std::string, int> lines_;
  std::map<std::string, int> output_lines_;
  std::map<ValueId, int> update_lines_;
  std::map<std::string, std::pair<std::optional<int64_t>, int>> dims_;
};

}  // namespace

Result<Graph> ReadGraph(TokenReader& reader, int depth) {
  return GraphReader(reader, depth).Read();
}

Result<Graph> ParseGraph(std::string_view text, const std::string& file) {
  TokenReader reader(text, file);
  return ReadGraph(reader, /*depth=*/0);
}

}  // namespace ridge
