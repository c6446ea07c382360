// Layouts of a training step, from its structure: what a user asks for with --mesh and --shard.
//
//   d=N                data parallel: inputs with samples are cut by d
//   d=N, zero 1 or 2   ... optimizer states, and with 2 sums of gradients, are stored cut by d
//   d=N, zero 3        ... and parameters
//   t=N                tensor parallel (Shoeybi et al., Megatron-LM, 2019): pairs of weights
//   between
//                      which every operator works on each feature or head by itself, the first cut
//                      by columns, the second by rows
//   t=N, sequence      ... and between the pairs tokens are cut (Korthikanti et al., 2022)
//
// Pairs are found from the letters of the nodes between two products, not from names: attention
// lets heads through, pointwise operators everything, norms nothing.
#pragma once
#include <string>
#include <vector>

#include "ridge/graph/graph.h"
#include "ridge/partition/propagate.h"

namespace ridge {

inline constexpr char kDataAxis[] = "d";
inline constexpr char kTensorAxis[] = "t";
inline constexpr char kPipelineAxis[] = "p";  // of stages, which no layout here cuts

struct Sharding {
  int zero = 0;           // 1, 2 or 3: the stage; 0: none
  bool sequence = false;  // cuts tokens between the pairs of tensor parallel weights

  bool operator==(const Sharding&) const = default;
};

// "zero1", "zero2", "zero3", "sequence", or two of them, "zero3,sequence"; "" and "none" are none.
// Fails with kInvalidArgument.
Result<Sharding> ParseSharding(const std::string& text);
std::string ShardingText(const Sharding& sharding);  // "zero3,sequence"; "none"

// Two weights, or several of the first kind (query, key and value), that devices share.
struct TensorPair {
  std::vector<ValueId> columns;  // parameters that are cut along what they produce; biases too
  ValueId row = kNoValue;        // the parameter that is cut along what it sums
  ValueId result = kNoValue;     // its product, which is pending
};

// `graph` is in normal form.  `uses`: how parameters are used, by name, in a step of the same job
// that has the products: for one that only updates them.
// Fails with kInvalidArgument: an axis that has no use here, a batch
// that the axis does not divide, zero without d, sequence without t, or t where no pair is found.
Result<Layout> MakeLayout(const Graph& graph, const Mesh& mesh, const Sharding& sharding,
                          std::vector<TensorPair>* pairs = nullptr,
                          const std::map<std::string, Split>& uses = {});

}  // namespace ridge
