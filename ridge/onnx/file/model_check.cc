#include "ridge/onnx/file/model_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

#include "onnx/onnx-ml.pb.h"
#include "ridge/onnx/file/model.h"

namespace ridge {
namespace {

constexpr int kDeepestCall = 64;

Status Bad(const std::string& text) { return Status(ErrorCode::kInvalidModel, text); }

std::string Short(const std::string& name) { return name.substr(0, 200); }

bool IsDefaultDomain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

Status CheckIr(const onnx::ModelProto& model) {
  if (!model.has_ir_version()) {
    return Bad("is no ONNX model: it has no ir_version");
  }
  const int64_t ir = model.ir_version();
  if (ir >= kOldestOnnxIr && ir <= kNewestOnnxIr) return Status();
  return Status(ErrorCode::kUnsupported, fmt::format("its IR version is {}; we read {} to {}", ir,
                                                     kOldestOnnxIr, kNewestOnnxIr));
}

Status CheckOpsets(const onnx::ModelProto& model) {
  if (model.opset_import_size() == 0) {
    return Bad("imports no operator set (opset_import); it must name at least one");
  }
  std::map<std::string, int64_t> seen;
  for (const auto& opset : model.opset_import()) {
    const bool standard = IsDefaultDomain(opset.domain());
    const auto [at, is_new] = seen.emplace(standard ? "" : opset.domain(), opset.version());
    if (at->second != opset.version()) {
      return Bad(fmt::format("imports the operator set '{}' twice, as version {} and {}",
                             Short(opset.domain()), at->second, opset.version()));
    }
    if (!is_new) continue;  // skl2onnx writes it so
    if (standard && (opset.version() < kOldestOnnxOpset || opset.version() > kNewestOnnxOpset)) {
      return Status(ErrorCode::kUnsupported,
                    fmt::format("its ai.onnx operator set is {}; we read {} to {}. hint: "
                                "onnx.version_converter, or another opset_version in the export",
                                opset.version(), kOldestOnnxOpset, kNewestOnnxOpset));
    }
  }
  return Status();
}

// Nodes of ai.onnx mean nothing without the version of their operator set.
Status CheckNodeDomains(const onnx::ModelProto& model) {
  for (const auto& opset : model.opset_import()) {
    if (IsDefaultDomain(opset.domain())) return Status();
  }
  for (const auto& node : model.graph().node()) {
    if (!IsDefaultDomain(node.domain())) continue;
    return Bad(fmt::format("imports no ai.onnx operator set, but {} '{}' belongs to it",
                           Short(node.op_type()), Short(node.name())));
  }
  return Status();
}

// Every value is made once: by an input or by a node.
Status CheckNames(const onnx::GraphProto& graph) {
  std::unordered_set<std::string> made;  // look-up only
  for (const auto& input : graph.input()) {
    if (input.name().empty()) return Bad("an input of the graph has no name");
    if (!made.insert(input.name()).second) {
      return Bad(fmt::format("the graph has two inputs '{}'", Short(input.name())));
    }
  }
  for (const auto& node : graph.node()) {
    if (node.op_type().empty()) {
      return Bad(fmt::format("node '{}' has no op_type", Short(node.name())));
    }
    for (const auto& output : node.output()) {
      if (output.empty() || made.insert(output).second) continue;
      return Bad(
          fmt::format("'{}' is made twice, the second time by {} '{}'; every value must be "
                      "made once",
                      Short(output), Short(node.op_type()), Short(node.name())));
    }
  }
  return Status();
}

Status CheckOutputs(const onnx::GraphProto& graph) {
  if (graph.output_size() == 0) return Bad("the graph has no outputs");
  std::unordered_set<std::string> seen;  // look-up only
  for (const auto& output : graph.output()) {
    if (output.name().empty()) return Bad("an output of the graph has no name");
    if (!seen.insert(output.name()).second) {
      return Bad(fmt::format("the graph has two outputs '{}'", Short(output.name())));
    }
  }
  return Status();
}

std::string KeyOf(const onnx::NodeProto& node) {
  return OnnxFunctionKey(node.domain(), node.op_type(), node.overload());
}

// Keys of what the nodes call, those in subgraphs too (how deep these nest is bounded by protobuf).
void CollectCalls(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                  std::set<std::string>& calls) {
  for (const auto& node : nodes) {
    calls.insert(KeyOf(node));
    for (const auto& attr : node.attribute()) {
      if (attr.has_g()) CollectCalls(attr.g().node(), calls);
      for (const auto& graph : attr.graphs()) CollectCalls(graph.node(), calls);
    }
  }
}

// Functions that call one another, as a graph of indices.
struct CallGraph {
  std::vector<std::string> names;
  std::vector<std::vector<size_t>> callers;  // of each function
  std::vector<size_t> open_calls;            // calls of each that are not settled yet
};

CallGraph MakeCallGraph(const onnx::ModelProto& model) {
  CallGraph graph;
  std::map<std::string, size_t> index;
  for (const auto& function : model.functions()) {
    index.emplace(OnnxFunctionKey(function.domain(), function.name(), function.overload()),
                  graph.names.size());
    graph.names.push_back(function.name());
  }
  graph.callers.resize(graph.names.size());
  graph.open_calls.resize(graph.names.size());
  for (size_t caller = 0; caller < graph.names.size(); ++caller) {
    std::set<std::string> calls;
    CollectCalls(model.functions(static_cast<int>(caller)).node(), calls);
    for (const std::string& key : calls) {
      const auto found = index.find(key);
      if (found == index.end()) continue;
      graph.callers[found->second].push_back(caller);
      ++graph.open_calls[caller];
    }
  }
  return graph;
}

}  // namespace

Status PrintableOnnxStatus(const Status& status) {
  return Status(status.code(), PrintableOnnxText(status.message()));
}

std::string PrintableOnnxText(std::string text) {
  constexpr size_t kLongest = 2000, kHead = 1400, kTail = 500;
  for (char& c : text) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F) c = '?';
  }
  if (text.size() <= kLongest) return text;
  const auto inside = [&](size_t at) { return (text[at] & 0xC0) == 0x80; };  // of a UTF-8 letter
  size_t head = kHead, tail = text.size() - kTail;
  while (head > 0 && inside(head)) --head;
  while (tail < text.size() && inside(tail)) ++tail;
  return fmt::format("{} [{} bytes left out] {}", text.substr(0, head), tail - head,
                     text.substr(tail));
}

Status CheckOnnxModel(const onnx::ModelProto& model) {
  RIDGE_RETURN_IF_ERROR(CheckIr(model));
  RIDGE_RETURN_IF_ERROR(CheckOpsets(model));
  if (!model.has_graph()) return Bad("has no graph");
  RIDGE_RETURN_IF_ERROR(CheckNodeDomains(model));
  RIDGE_RETURN_IF_ERROR(CheckNames(model.graph()));
  return CheckOutputs(model.graph());
}

// Functions without open calls are settled, and then their callers, round by round; what is never
// settled calls itself.
Status CheckOnnxFunctions(const onnx::ModelProto& model) {
  CallGraph graph = MakeCallGraph(model);
  std::vector<int> depth(graph.names.size(), 1);
  std::vector<size_t> settled;
  for (size_t i = 0; i < graph.names.size(); ++i) {
    if (graph.open_calls[i] == 0) settled.push_back(i);
  }
  for (size_t done = 0; done < settled.size(); ++done) {
    const size_t callee = settled[done];
    if (depth[callee] > kDeepestCall) {
      return Bad(fmt::format("function '{}' calls others more than {} deep",
                             Short(graph.names[callee]), kDeepestCall));
    }
    for (const size_t caller : graph.callers[callee]) {
      depth[caller] = std::max(depth[caller], depth[callee] + 1);
      if (--graph.open_calls[caller] == 0) settled.push_back(caller);
    }
  }
  for (size_t i = 0; i < graph.names.size(); ++i) {
    if (graph.open_calls[i] == 0) continue;
    return Bad(
        fmt::format("function '{}' calls itself, directly or over others", Short(graph.names[i])));
  }
  return Status();
}

}  // namespace ridge
