// We come from graph/autodiff.cc or a graph file.  Known here: the whole step as one graph.  The
// simpler graph goes on to plan/planner.cc.
#include "ridge/lower/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ridge/core/split.h"
#include "ridge/graph/keep_f32.h"
#include "ridge/graph/passes/passes.h"
#include "ridge/graph/suggest.h"
#include "ridge/graph/verify.h"
#include "ridge/lower/autocast.h"
#include "ridge/lower/dequantize_late.h"
#include "ridge/lower/group_updates.h"
#include "ridge/lower/passes.h"
#include "ridge/lower/read_logits_once.h"
#include "ridge/lower/reduced_storage.h"
#include "ridge/lower/scatter_into_sum.h"
#include "ridge/lower/split_bias_gradients.h"
#include "ridge/lower/split_norms.h"

namespace ridge {

namespace {

// Every attention has a softmax; most graphs of a training step have none that is not one already.
Result<Graph> AttentionOfSoftmax(Graph graph, const RewriteRules&) {
  const bool any = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                               [](const Node& node) { return node.op->name == "softmax"; });
  if (!any) return graph;
  return RecognizeAttention(graph);
}

// A pass that asks nothing of the device.
template <Result<Graph> (*kPass)(Graph)>
Result<Graph> OnAnyDevice(Graph graph, const RewriteRules&) {
  return kPass(std::move(graph));
}

constexpr bool kForward = true;

}  // namespace

const std::vector<PassInfo>& AllPasses() {
  static const std::vector<PassInfo> passes = {
      // First, so that the rules of algebra see numbers and not the nodes that make them.
      {"fold", "evaluate nodes whose inputs are constants", OnAnyDevice<FoldConstants>},
      // Before everything that makes nodes larger: what is not read should not be looked at.
      {"push_slices", "compute only the rows that are read", OnAnyDevice<PushDownSlices>, kForward},
      // Before algebra, which rewrites parts of what is looked for.
      {"patterns", "layer_norm, rms_norm, gelu, silu from primitive nodes",
       OnAnyDevice<RecognizePatterns>},
      {"attention", "attention from products, masks and softmax", AttentionOfSoftmax},
      // Behind attention, which makes transposes; before algebra, which moves them elsewhere.
      {"attention_layout", "attention on heads as projections write them",
       OnAnyDevice<FoldHeadTransposes>, kForward},
      // Before cse: what two paths wrote differently often is the same after it.
      {"algebra", "x*1 -> x, transposes into matmul, bias into matmul, ...",
       OnAnyDevice<SimplifyAlgebra>},
      // Behind algebra: the bias is in the product.
      {"pad_products", "classes of logits up to what the device multiplies fast", PadProducts,
       kForward},
      {"cse", "merge nodes that compute the same", OnAnyDevice<MergeCommon>},
      // Before fuse: a dead reader would keep a value out of an epilogue.
      {"dce", "drop what no output and no update needs", OnAnyDevice<RemoveDead>},
      // Last: what comes after would have to look into the fused nodes.
      {"fuse", "pointwise nodes into epilogues and into one node", Fuse},
      // The planner's: they need kernels and layouts.
      {"inplace", "write results over inputs that are dead", nullptr},
      {"layout", "keep blocked formats between nodes", nullptr},
  };
  return passes;
}

namespace {

Status UnknownPass(std::string_view name) {
  std::vector<std::string> known;
  for (const PassInfo& pass : AllPasses()) known.push_back(pass.name);
  std::string list;
  for (const std::string& pass : known) list += (list.empty() ? "" : ", ") + pass;
  return InvalidArgument(
      fmt::format("unknown pass '{}'{}; known: {}. hint: -NAME leaves one out, "
                  "only:NAME,NAME runs just these, none runs none",
                  name, DidYouMean(name, known), list));
}

bool IsPass(std::string_view name) {
  return std::any_of(AllPasses().begin(), AllPasses().end(),
                     [name](const PassInfo& pass) { return name == pass.name; });
}

Result<std::vector<std::string_view>> ParseNames(std::string_view list, bool with_minus) {
  std::vector<std::string_view> names;
  for (std::string_view part : SplitAt(list, ',')) {
    if (with_minus && !part.starts_with('-')) return UnknownPass(part);
    const std::string_view name = with_minus ? part.substr(1) : part;
    if (!IsPass(name)) return UnknownPass(part);
    names.push_back(name);
  }
  return names;
}

// A failing pass is our bug, whatever code its error has.
Status PassError(const char* name, const Status& status) {
  return Status(ErrorCode::kInternal, fmt::format("pass {}: {}", name, status.message()));
}

#ifdef NDEBUG
constexpr bool kCheckEachPass = false;
#else
constexpr bool kCheckEachPass = true;
#endif

Result<Graph> RunChecked(const PassInfo& pass, Graph graph, const RewriteRules& rules, bool check) {
  Result<Graph> result = pass.run(std::move(graph), rules);
  if (!result.ok()) return PassError(pass.name, result.status());
  if (!check) return result;
  if (Status status = CheckGraph(*result); !status.ok()) return PassError(pass.name, status);
  return result;
}

}  // namespace

bool PassSelection::Has(std::string_view name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<PassSelection> ParsePassSpec(std::string_view spec) {
  PassSelection selection;
  if (spec == "none") return selection;
  const bool only = spec.starts_with("only:");
  std::vector<std::string_view> named;
  if (!spec.empty()) {
    RIDGE_ASSIGN_OR_RETURN(named, ParseNames(only ? spec.substr(5) : spec, !only));
  }
  for (const PassInfo& pass : AllPasses()) {
    const bool is_named = std::find(named.begin(), named.end(), pass.name) != named.end();
    if (is_named == only) selection.names.push_back(pass.name);
  }
  return selection;
}

namespace {

// As Graph::Call, without `where`, into a call whose memory is reused.
void FillTypes(const Graph& graph, const Node& node, OpCall& call) {
  static const TensorType kAbsent = OpCall::Absent();
  call.inputs.resize(node.inputs.size());
  call.outputs.resize(node.outputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i)
    call.inputs[i] = node.inputs[i] == kNoValue ? kAbsent : graph.type(node.inputs[i]);
  for (size_t i = 0; i < node.outputs.size(); ++i) call.outputs[i] = graph.type(node.outputs[i]);
  call.attrs = node.attrs;
}

}  // namespace

GraphSize MeasureGraph(const Graph& graph) {
  GraphSize size;
  size.nodes = static_cast<int64_t>(graph.nodes().size());
  OpCall call;
  for (const Node& node : graph.nodes()) {
    FillTypes(graph, node, call);
    const Cost cost = CallCost(*node.op, call);
    size.flops += static_cast<double>(cost.flops);
    size.traffic_bytes += static_cast<double>(cost.bytes_read);
    size.traffic_bytes += static_cast<double>(cost.bytes_written);
    for (ValueId id : node.outputs) size.result_bytes += graph.type(id).bytes();
  }
  return size;
}

PassSelection ForwardPasses(const PassSelection& selection) {
  PassSelection forward;
  for (const PassInfo& pass : AllPasses()) {
    if (pass.forward && selection.Has(pass.name)) forward.names.push_back(pass.name);
  }
  return forward;
}

namespace {

class Runner {
 public:
  Runner(const RewriteRules& rules, std::vector<PassReport>* reports)
      : rules_(rules), reports_(reports) {}

  Result<Graph> Run(const PassInfo& pass, Graph graph, bool last) {
    if (reports_ != nullptr && !known_) size_ = MeasureGraph(graph);
    RIDGE_ASSIGN_OR_RETURN(graph,
                           RunChecked(pass, std::move(graph), rules_, kCheckEachPass || last));
    if (reports_ == nullptr) return graph;
    const GraphSize before = std::exchange(size_, MeasureGraph(graph));
    known_ = true;
    reports_->push_back({pass.name, before, size_});
    return graph;
  }

  // The graph was changed by something that is not reported.
  void Forget() { known_ = false; }

 private:
  const RewriteRules& rules_;
  std::vector<PassReport>* const reports_;
  GraphSize size_;  // of the graph after the last pass
  bool known_ = false;
};

std::vector<const PassInfo*> Rewrites(const PassSelection& selection) {
  std::vector<const PassInfo*> passes;
  for (const PassInfo& pass : AllPasses()) {
    if (pass.run != nullptr && selection.Has(pass.name)) passes.push_back(&pass);
  }
  return passes;
}

}  // namespace

Result<Graph> RunPasses(Graph graph, const PassSelection& selection, const RewriteRules& rules,
                        std::vector<PassReport>* reports) {
  const std::vector<const PassInfo*> passes = Rewrites(selection);
  Runner runner(rules, reports);
  for (const PassInfo* pass : passes) {
    RIDGE_ASSIGN_OR_RETURN(graph, runner.Run(*pass, std::move(graph), pass == passes.back()));
  }
  return graph;
}

// Casts of operands and copies of values and of weights come after the passes that match f32
// patterns and would merge the copies, and before nodes are fused with their neighbours.  Logits
// are cut into chunks before anything is made for all of their readers.  Who reads one value of
// logits is joined before some of them read a copy or a cast of it.  Values to store in 16 bits are
// chosen last, when the nodes are final; those that the device's convolutions write in 16 bits only
// follow.  Where each product is kept in f32, values are too.  Gradients of biases are split off
// when nodes are final.  Updates are grouped behind all that looks for single ones.
Result<Graph> RewriteStep(Graph graph, const StepRewrites& rewrites, KernelQuery& kernels,
                          std::vector<PassReport>* reports) {
  static const PassInfo conv_pool = {"conv_pool", "convolutions with their pools", FuseConvPool};
  static const PassInfo fuse = {"fuse", "the other half of fuse", FuseNeighbours};
  const bool narrow = rewrites.operands != DType::kF32 && !KeepsEachProduct(graph);
  const bool fuses = rewrites.passes.Has("fuse");
  Runner runner(kernels.rules(), reports);
  std::vector<const PassInfo*> passes = Rewrites(rewrites.passes);
  if (fuses) passes.pop_back();
  for (const PassInfo* pass : passes) {
    const bool last = !fuses && pass == passes.back();
    RIDGE_ASSIGN_OR_RETURN(graph, runner.Run(*pass, std::move(graph), last));
  }
  if (rewrites.chunk_loss) {
    Result<Graph> chunked = rewrites.chunk_loss(std::move(graph));
    if (!chunked.ok()) return PassError("chunk_loss", chunked.status());
    graph = *std::move(chunked);
    runner.Forget();
  }
  if (fuses) {
    RIDGE_ASSIGN_OR_RETURN(graph, ReadLogitsOnce(std::move(graph), kernels.rules()));
    RIDGE_ASSIGN_OR_RETURN(graph, ScatterIntoSum(std::move(graph), kernels.rules()));
    runner.Forget();
  }
  if (narrow) {
    RIDGE_ASSIGN_OR_RETURN(graph, AutocastMatmuls(std::move(graph), rewrites.operands, kernels));
    runner.Forget();
  }
  RIDGE_ASSIGN_OR_RETURN(graph, DequantizeLate(std::move(graph)));
  if (fuses) {
    RIDGE_ASSIGN_OR_RETURN(graph, runner.Run(conv_pool, std::move(graph), /*last=*/false));
  }
  if (rewrites.recompute) {
    RIDGE_ASSIGN_OR_RETURN(graph, rewrites.recompute(std::move(graph)));
    runner.Forget();
  }
  if (fuses) {
    RIDGE_ASSIGN_OR_RETURN(graph, runner.Run(fuse, std::move(graph), /*last=*/true));
  }
  RIDGE_ASSIGN_OR_RETURN(graph, SplitBiasGradients(std::move(graph), kernels.rules()));
  if (narrow && fuses) {
    RIDGE_ASSIGN_OR_RETURN(graph,
                           AutocastActivations(std::move(graph), rewrites.operands, kernels));
  }
  if (narrow) {
    RIDGE_ASSIGN_OR_RETURN(
        graph, NarrowConvolutions(std::move(graph), rewrites.operands, kernels.rules()));
  }
  RIDGE_ASSIGN_OR_RETURN(graph, SplitNorms(std::move(graph)));
  if (!fuses || !rewrites.group_updates) return graph;
  return GroupUpdates(std::move(graph), kernels.rules());
}

}  // namespace ridge
