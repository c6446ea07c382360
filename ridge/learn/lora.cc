#include "ridge/learn/lora.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "ridge/core/glob.h"
#include "ridge/core/split.h"
#include "ridge/graph/name_patterns.h"
#include "ridge/graph/passes/rewriter.h"
#include "ridge/graph/uses.h"

namespace ridge {
namespace {

// How an adapter takes part.
enum class Way { kMatMul, kConv, kSum };

struct Site {
  ValueId weight = kNoValue;
  Way way = Way::kSum;
  bool transposed = false;  // the weight is [in, out]
  std::string name;         // without ".weight"

  std::string a() const { return name + ".lora_A.weight"; }
  std::string b() const { return name + ".lora_B.weight"; }
};

std::string ModuleName(const std::string& weight) {
  constexpr std::string_view kWeight = ".weight";
  return weight.ends_with(kWeight) ? weight.substr(0, weight.size() - kWeight.size()) : weight;
}

// As a sum where it is read otherwise than as the right operand of products that all transpose it
// or all do not, or as the kernel of convolutions.
Site SiteOf(const Graph& graph, const GraphUses& uses, ValueId weight) {
  Site site;
  site.weight = weight;
  site.name = ModuleName(graph.value(weight).name);
  const bool matrix = graph.type(weight).rank() == 2;
  std::optional<Site> common;
  for (NodeId id : uses.ReadersOf(weight)) {
    const Node& node = graph.node(id);
    Site here = site;
    here.way = matrix ? Way::kMatMul : Way::kConv;
    here.transposed = matrix && node.op->name == "matmul" && node.attrs.integer("transpose_b") == 0;
    const bool right =
        node.inputs[0] != weight && node.inputs.size() > 1 && node.inputs[1] == weight;
    const bool product = node.op->name == (matrix ? "matmul" : "conv") && right;
    if (!product || (common && common->transposed != here.transposed)) return site;
    common = here;
  }
  return common && uses.OnlyNodesRead(weight) ? *common : site;
}

bool MayAdapt(const Graph& graph, const Site& site) {
  const TensorType& type = graph.type(site.weight);
  if (!IsFloat(type.dtype) || type.elements() == 0) return false;
  return type.rank() == 2 || site.way == Way::kConv;
}

bool HasGroups(const Graph& graph, const GraphUses& uses, ValueId weight) {
  for (NodeId id : uses.ReadersOf(weight)) {
    const Node& node = graph.node(id);
    if (node.op->name == "conv" && node.attrs.integer("groups") != 1) return true;
  }
  return false;
}

// Weights that a target matches, in order of creation.
Result<std::vector<Site>> FindSites(const Graph& graph, const LoraOptions& options) {
  const GraphUses uses(graph);
  std::vector<Site> sites;
  std::vector<std::string> names, adapted;
  for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    const Site site = SiteOf(graph, uses, id);
    if (!MayAdapt(graph, site) || HasGroups(graph, uses, id)) continue;
    const std::string& name = graph.value(id).name;
    names.push_back(name);
    const bool by_default = options.targets.empty() && site.way == Way::kMatMul;
    if (by_default || MatchesAny(name, options.targets)) {
      sites.push_back(site);
      adapted.push_back(name);
    }
  }
  for (const std::string& target : options.targets) {
    const auto matches = [&](const std::string& name) { return MatchesPattern(name, target); };
    if (std::none_of(adapted.begin(), adapted.end(), matches))
      return NoNameMatches(graph.name, "--lora target=", target, names);
  }
  if (!sites.empty()) return sites;
  return InvalidArgument(graph.name + ": --lora finds no weight that only products read");
}

class Adapter {
 public:
  Adapter(const Graph& forward, const LoraOptions& options, const std::vector<Site>& sites)
      : rewriter_(forward), options_(options) {
    for (const Site& site : sites) sites_[site.weight] = site;
  }

  Result<Graph> Adapt() {
    RIDGE_RETURN_IF_ERROR(rewriter_.Walk([&](const Node& node) { return Visit(node); }));
    return rewriter_.Finish();
  }

 private:
  const Graph& from() const { return rewriter_.from(); }

  ValueId AddParameter(const std::string& name, DType dtype, Dims dims, Init init) {
    ValueInfo info;
    info.name = name;
    info.type = {dtype, std::move(dims)};
    info.kind = ValueKind::kParameter;
    info.init = std::move(init);
    return rewriter_.AddLeaf(std::move(info));
  }

  struct Pair {
    ValueId a, b;
  };

  // A [rank, in, kernel...] and B [out, rank, 1...], once.
  Pair Factors(const Site& site) {
    const auto [found, first] = pairs_.try_emplace(site.weight);
    if (!first) return found->second;
    const TensorType& type = from().type(site.weight);
    Dims a = type.dims, b(type.dims.size(), 1);
    if (site.transposed) std::swap(a[0], a[1]);
    b[0] = a[0];
    b[1] = options_.rank;
    a[0] = options_.rank;
    int64_t in = 1;
    for (size_t d = 1; d < a.size(); ++d) in *= a[d];
    const double bound = 1 / std::sqrt(static_cast<double>(in));
    found->second.a = AddParameter(site.a(), type.dtype, a, Init::Uniform(bound));
    found->second.b = AddParameter(site.b(), type.dtype, b, Init::Zeros());
    return found->second;
  }

  Result<ValueId> Add(const char* op, std::vector<ValueId> inputs, AttrMap attrs,
                      const std::string& name) {
    return rewriter_.AddNamedNode(*FindOp(op), std::move(inputs), std::move(attrs),
                                  rewriter_.FreshName(name), /*location=*/"");
  }

  Result<ValueId> Scaled(ValueId x, const std::string& name) {
    const DType dtype = rewriter_.to().type(x).dtype;
    const ValueId scale =
        rewriter_.AddConstant(name + ".lora_scale", Tensor::Scalar(dtype, options_.scale()));
    return Add("mul", {x, scale}, {}, name + ".lora");
  }

  // (x A') B', as a product or a convolution.
  Result<ValueId> Beside(const Site& site, const Node& node) {
    const auto [a, b] = Factors(site);
    const ValueId x = rewriter_.Use(node.inputs[0]);
    ValueId narrow = kNoValue, wide = kNoValue;
    if (site.way == Way::kMatMul) {
      const AttrMap first = {{"transpose_a", node.attrs.integer("transpose_a")},
                             {"transpose_b", 1}};
      RIDGE_ASSIGN_OR_RETURN(narrow, Add("matmul", {x, a}, first, site.name + ".lora_A"));
      RIDGE_ASSIGN_OR_RETURN(
          wide, Add("matmul", {narrow, b}, {{"transpose_b", 1}}, site.name + ".lora_B"));
    } else {
      RIDGE_ASSIGN_OR_RETURN(narrow, Add("conv", {x, a}, node.attrs, site.name + ".lora_A"));
      RIDGE_ASSIGN_OR_RETURN(wide, Add("conv", {narrow, b}, {}, site.name + ".lora_B"));
    }
    return Scaled(wide, site.name);
  }

  // W + (alpha / rank) B A, once.
  Result<ValueId> Summed(const Site& site) {
    const auto known = sums_.find(site.weight);
    if (known != sums_.end()) return known->second;
    const auto [a, b] = Factors(site);
    RIDGE_ASSIGN_OR_RETURN(const ValueId product,
                           Add("matmul", {b, a}, {}, site.name + ".lora_BA"));
    RIDGE_ASSIGN_OR_RETURN(const ValueId scaled, Scaled(product, site.name));
    RIDGE_ASSIGN_OR_RETURN(const ValueId sum, Add("add", {rewriter_.Use(site.weight), scaled}, {},
                                                  site.name + ".adapted"));
    return sums_[site.weight] = sum;
  }

  Status Visit(const Node& node) {
    std::vector<ValueId> inputs;
    const Site* beside = nullptr;
    for (ValueId id : node.inputs) {
      const auto found = sites_.find(id);
      const bool sum = found != sites_.end() && found->second.way == Way::kSum;
      if (found != sites_.end() && !sum) beside = &found->second;
      ValueId now = sum ? kNoValue : rewriter_.Use(id);
      if (sum) {
        RIDGE_ASSIGN_OR_RETURN(now, Summed(found->second));
      }
      inputs.push_back(now);
    }
    if (beside == nullptr) return rewriter_.CopyOn(node, std::move(inputs));
    RIDGE_ASSIGN_OR_RETURN(const ValueId frozen, Add(node.op->name.c_str(), std::move(inputs),
                                                     node.attrs, beside->name + ".frozen"));
    RIDGE_ASSIGN_OR_RETURN(const ValueId adapter, Beside(*beside, node));
    return rewriter_.Emit(*FindOp("add"), {frozen, adapter}, {}, {node.outputs[0]}, node.location);
  }

  GraphRewriter rewriter_;
  const LoraOptions& options_;
  std::map<ValueId, Site> sites_;
  std::map<ValueId, Pair> pairs_;
  std::map<ValueId, ValueId> sums_;
};

std::vector<double> Doubles(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
  ConvertToDouble(tensor.type().dtype, tensor.data(), numbers.data(), tensor.elements());
  return numbers;
}

// w + scale B A, the weight as [out, in...], or [in, out].
Tensor WithProduct(const Site& site, double scale, const Tensor& a, const Tensor& b,
                   const Tensor& w) {
  const int64_t out = b.type().dims[0], rank = b.type().dims[1], in = a.elements() / rank;
  const std::vector<double> narrow = Doubles(a), wide = Doubles(b);
  std::vector<double> sum = Doubles(w), row(static_cast<size_t>(in));
  for (int64_t o = 0; o < out; ++o) {
    std::fill(row.begin(), row.end(), 0.0);
    for (int64_t r = 0; r < rank; ++r) {
      const double factor = scale * wide[static_cast<size_t>(o * rank + r)];
      const double* from = narrow.data() + r * in;
      for (int64_t i = 0; i < in; ++i) row[static_cast<size_t>(i)] += factor * from[i];
    }
    for (int64_t i = 0; i < in; ++i)
      sum[static_cast<size_t>(site.transposed ? i * out + o : o * in + i)] +=
          row[static_cast<size_t>(i)];
  }
  Tensor merged(w.type());
  ConvertFromDouble(w.type().dtype, sum.data(), merged.mutable_data(), merged.elements());
  return merged;
}

}  // namespace

Result<LoraOptions> ParseLora(const std::string& text) {
  LoraOptions options;
  bool has_alpha = false;
  const auto bad = [&](const std::string& why) {
    return InvalidArgument(fmt::format(
        "--lora is '{}': {}. hint: --lora rank=8,alpha=16,target='*.qkv.*'", text, why));
  };
  for (const std::string_view part : SplitAt(text, ',')) {
    const size_t equals = std::min(part.find('='), part.size());
    const std::string key(part.substr(0, equals));
    const std::string value(part.substr(std::min(equals + 1, part.size())));
    const char* const end = value.data() + value.size();
    std::from_chars_result read{end, std::errc()};
    if (key == "rank") read = std::from_chars(value.data(), end, options.rank);
    if (key == "alpha") read = std::from_chars(value.data(), end, options.alpha);
    if (key == "target") options.targets.push_back(value);
    if (key != "rank" && key != "alpha" && key != "target")
      return bad(fmt::format("'{}' is none of rank, alpha, target", key));
    if (value.empty() || read.ec != std::errc() || read.ptr != end)
      return bad(fmt::format("{} is '{}'", key, value));
    has_alpha = has_alpha || key == "alpha";
  }
  if (options.rank < 1) return bad("rank must be at least 1");
  if (!has_alpha) options.alpha = static_cast<double>(options.rank);
  if (!(options.alpha > 0) || !std::isfinite(options.alpha)) return bad("alpha must be above 0");
  return options;
}

Result<Graph> WithLora(const Graph& forward, const LoraOptions& options,
                       const std::vector<std::string>& trainable) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Site> sites, FindSites(forward, options));
  RIDGE_ASSIGN_OR_RETURN(Graph graph, Adapter(forward, options, sites).Adapt());
  for (ValueId id : graph.ValuesOfKind(ValueKind::kParameter)) {
    ValueInfo& info = graph.mutable_value(id);
    const bool adapter = forward.FindValue(info.name) == kNoValue;
    info.trainable = adapter || MatchesAny(info.name, trainable);
  }
  return graph;
}

Status MergeLora(const Graph& graph, const LoraOptions& options,
                 std::map<std::string, Tensor>& tensors) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<Site> sites, FindSites(graph, options));
  for (const Site& site : sites) {
    const std::string& name = graph.value(site.weight).name;
    const auto a = tensors.find(site.a()), b = tensors.find(site.b()), w = tensors.find(name);
    if (a == tensors.end() || b == tensors.end() || w == tensors.end()) {
      return Status(ErrorCode::kInvalidData,
                    fmt::format("{}: the checkpoint lacks an adapter of '{}', {} or {}", graph.name,
                                name, site.a(), site.b()));
    }
    w->second = WithProduct(site, options.scale(), a->second, b->second, w->second);
    tensors.erase(site.a());
    tensors.erase(site.b());
  }
  return Status();
}

}  // namespace ridge
