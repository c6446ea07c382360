// Every operator in every case of its file, cut along each of its letters.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "ridge/graph/axes.h"
#include "ridge/partition/letters.h"
#include "ridge/partition/normal_form.h"
#include "ridge/partition/partition.h"
#include "tests/ops/case_file.h"
#include "tests/partition/compare.h"
#include "tests/partition/golden.h"

namespace ridge {
namespace {

std::string Stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

std::string CaseFileOf(const std::string& op) {
  for (const std::string& path : AllCaseFiles())
    if (Stem(path) == op) return path;
  return op;
}

// A case as a graph: its operands are inputs `x0`, `x1`, .., its results outputs `y0`, ...
struct CaseGraph {
  Graph graph;
  NamedNumbers inputs;
};

Result<CaseGraph> GraphOfCase(const OpDef& op, const OpCase& op_case) {
  CaseGraph made;
  std::vector<ValueId> operands;
  for (size_t i = 0; i < op_case.inputs.size(); ++i) {
    if (op_case.inputs[i] == OpCall::Absent()) {
      operands.push_back(kNoValue);
      continue;
    }
    const std::string name = fmt::format("x{}", i);
    operands.push_back(made.graph.AddInput(name, op_case.inputs[i]));
    made.inputs.merge(NumbersOf({{name, CaseInput(op_case, i)}}));
  }
  while (!operands.empty() && operands.back() == kNoValue) operands.pop_back();
  RIDGE_ASSIGN_OR_RETURN(const NodeId node,
                         made.graph.AddNode(op, std::move(operands), op_case.attrs, {"y"}));
  const std::vector<ValueId> outputs = made.graph.node(node).outputs;
  for (size_t k = 0; k < outputs.size(); ++k)
    made.graph.AddOutput(fmt::format("y{}", k), outputs[k]);
  return made;
}

// Cuts what has one letter of the case's node, and says what goes wrong.  The cut operands are
// annotated: then the node has nothing to move.
class LetterProbe {
 public:
  LetterProbe(const OpDef& op, const CaseGraph& made, int64_t parts)
      : made_(made),
        mesh_{{{"a", parts}}},
        node_(made.graph.nodes()[0]),
        letters_(op, made.graph.Call(node_), mesh_) {}

  std::string Run(std::set<std::string>* cut) {
    for (size_t f = 0; f < letters_.factors().size(); ++f) {
      const LetterCut letter{f, 0, 1};
      const std::string wrong = letters_.Allows(letter) ? Check(letter) : CheckRefused(letter);
      if (!wrong.empty()) return fmt::format("letter {} in {} parts: {}", f, parts(), wrong);
      if (letters_.Allows(letter)) cut->insert(Describe(letter));
    }
    return "";
  }

 private:
  int64_t parts() const { return mesh_.size(0); }

  std::string Describe(const LetterCut& letter) const {
    std::string text;
    for (Slot slot : letters_.slots()) {
      if (const std::optional<Cut> own = letters_.CutOf(slot, letter))
        text += fmt::format(" {}{}.{}", slot.is_output ? "y" : "x", slot.index, own->dim);
    }
    return text;
  }

  Layout LayoutOf(const LetterCut& letter) const {
    Layout layout;
    for (Slot slot : letters_.slots()) {
      const std::optional<Cut> own = letters_.CutOf(slot, letter);
      Split& split = layout.use[ValueAt(node_, slot)];
      if (own && !split.Uses(own->axis)) split.Add(*own);
      if (slot.is_output) layout.use.erase(ValueAt(node_, slot));
    }
    return layout;
  }

  std::string Check(const LetterCut& letter) const {
    const Result<Partitioned> partitioned = Partition(made_.graph, LayoutOf(letter), mesh_);
    if (!partitioned.ok()) return partitioned.status().message();
    return CompareSteps(made_.graph, *partitioned, made_.graph, made_.inputs, 1);
  }

  // Extents that are no multiples are refused, not rounded.
  std::string CheckRefused(const LetterCut& letter) const {
    const Layout layout = LayoutOf(letter);
    const bool uneven = std::any_of(layout.use.begin(), layout.use.end(), [&](const auto& entry) {
      const Split& split = entry.second;
      return !split.cuts.empty() &&
             !CanCut(made_.graph.type(entry.first).dims, {}, split.cuts[0], mesh_);
    });
    if (!uneven) return "";
    const Result<Partitioned> partitioned = Partition(made_.graph, layout, mesh_);
    return partitioned.ok() ? "an uneven cut is not refused" : "";
  }

  const CaseGraph& made_;
  const Mesh mesh_;
  const Node& node_;
  const Letters letters_;
};

class SharedOperators : public testing::TestWithParam<std::string> {};

TEST_P(SharedOperators, AreTheSameOnDevicesAlongEveryLetter) {
  const Result<CaseFile> file = ReadCaseFile(GetParam());
  ASSERT_TRUE(file.ok()) << file.status().message();
  const OpDef* op = FindOp(file->op);
  ASSERT_NE(op, nullptr) << file->op;
  std::set<std::string> cut;
  for (const OpCase& op_case : file->cases) {
    if (op_case.kind == OpCase::Kind::kError) continue;
    const Result<CaseGraph> made = GraphOfCase(*op, op_case);
    ASSERT_TRUE(made.ok()) << file->path << ":" << op_case.line << ": " << made.status().message();
    for (int64_t parts : {2, 3}) {
      const std::string wrong = LetterProbe(*op, *made, parts).Run(&cut);
      EXPECT_EQ(wrong, "") << file->path << ":" << op_case.line << ": " << op_case.text;
    }
  }
  RecordProperty("letters", static_cast<int>(cut.size()));
}

INSTANTIATE_TEST_SUITE_P(Ops, SharedOperators, testing::ValuesIn(AllCaseFiles()),
                         [](const auto& info) { return Stem(info.param); });

// ---- the rules on record

const char* OverName(Factor::Over over) {
  switch (over) {
    case Factor::Over::kSum:
      return "sum";
    case Factor::Over::kMean:
      return "mean";
    case Factor::Over::kMax:
      return "max";
    case Factor::Over::kMin:
      return "min";
    case Factor::Over::kNothing:
      return "";
  }
  return "";
}

// "x0.1 x1.0 sum": a letter with its dimensions, "/3" behind one that is cut in three blocks.
std::string LetterText(const Letters& letters, size_t f) {
  const Factor& factor = letters.factors()[f];
  std::string text;
  bool reduced = false;
  for (Slot slot : letters.slots()) {
    const std::optional<Cut> own = letters.CutOf(slot, {f, 0, 1});
    reduced = reduced || (slot.is_output && !own);
    if (!own) continue;
    text += fmt::format("{}{}{}.{}", text.empty() ? "" : " ", slot.is_output ? "y" : "x",
                        slot.index, own->dim);
    if (own->blocks > 1) text += fmt::format("/{}", own->blocks);
  }
  if (reduced && factor.over != Factor::Over::kNothing)
    text += fmt::format(" {}", OverName(factor.over));
  if (factor.divided_attr != nullptr) text += fmt::format(" {}", factor.divided_attr);
  return text;
}

// The letters of the case that has the most of them.
std::string RuleOf(const OpDef& op, const CaseFile& file) {
  const Mesh mesh{{{"a", 1}}};
  std::string rule = "none";
  size_t most = 0;
  for (const OpCase& op_case : file.cases) {
    if (op_case.kind == OpCase::Kind::kError) continue;
    const Result<CaseGraph> made = GraphOfCase(op, op_case);
    if (!made.ok()) continue;
    const Letters letters(op, made->graph.Call(made->graph.nodes()[0]), mesh);
    if (letters.factors().size() <= most) continue;
    most = letters.factors().size();
    rule.clear();
    for (size_t f = 0; f < most; ++f) rule += (f == 0 ? "" : ", ") + LetterText(letters, f);
  }
  return rule;
}

TEST(SharedOperators, HaveTheRulesOnRecord) {
  std::string text =
      "# The letters of every operator, in the case of its file that has the most: dimensions of\n"
      "# operands (x) and results (y) that devices cut together, and what a result that lacks "
      "them\n"
      "# is pending as.\n";
  for (const std::string& path : AllCaseFiles()) {
    const Result<CaseFile> file = ReadCaseFile(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    text += fmt::format("{}: {}\n", file->op, RuleOf(*FindOp(file->op), *file));
  }
  ExpectGolden("rules.txt", text);
}

// Epsilon is a constant of the normal form, which f32 does not have exactly.
OpCase InF64(OpCase op_case) {
  for (TensorType& type : op_case.inputs)
    if (type != OpCall::Absent()) type.dtype = DType::kF64;
  return op_case;
}

// Batch norm has no letter of its own; in normal form its moments are sums over devices.
TEST(SharedOperators, BatchNormIsSynchronizedInNormalForm) {
  for (const char* name : {"batch_norm", "batch_norm_grad"}) {
    const Result<CaseFile> file = ReadCaseFile(CaseFileOf(name));
    ASSERT_TRUE(file.ok()) << file.status().message();
    const OpDef* op = FindOp(name);
    int shared = 0;
    for (const OpCase& op_case : file->cases) {
      if (op_case.kind == OpCase::Kind::kError) continue;
      const Result<CaseGraph> made = GraphOfCase(*op, InF64(op_case));
      ASSERT_TRUE(made.ok());
      const Result<Graph> form = NormalForm(made->graph);
      ASSERT_TRUE(form.ok()) << form.status().message();
      const Mesh mesh{{{"a", 2}}};
      for (int dim : {0, 1}) {
        const Cut cut{dim, 0, 1};
        Layout layout;
        if (!CanCut(form->type(form->FindValue("x0")).dims, {}, cut, mesh)) continue;
        layout.use[form->FindValue("x0")].Add(cut);
        const Result<Partitioned> parts = Partition(*form, layout, mesh);
        ASSERT_TRUE(parts.ok()) << parts.status().message();
        EXPECT_EQ(CompareSteps(made->graph, *parts, *form, made->inputs, 1), "")
            << file->path << ":" << op_case.line << ": " << op_case.text;
        ++shared;
      }
    }
    EXPECT_GT(shared, 4) << name;
  }
}

}  // namespace
}  // namespace ridge
