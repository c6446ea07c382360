// Virtual devices: the judge of partitioning.
//
// Runs a local graph on N devices in one process, each with its own buffers; collectives are loops
// over them.  Everything is computed by the operators' references in f64, whatever the dtypes, so a
// right partition differs from one device by rounding in f64 alone.  For tests: slow, and it keeps
// every value.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/graph/numbers.h"
#include "ridge/partition/partition.h"

namespace ridge {

class VirtualDevices {
 public:
  // The devices of a mesh.  `whole` and `parts` must outlive it.  Variables start as their Init
  // says.  Fails when that can't be read.
  static Result<VirtualDevices> Create(const Graph& whole, const Partitioned& parts,
                                       uint64_t seed = 0);

  // Replaces what a variable holds.
  void SetVariable(ValueId variable, const std::vector<double>& whole);
  // What a variable holds, put together.  Fails with kInternal when devices that should hold the
  // same differ.
  Result<std::vector<double>> Variable(ValueId variable) const;

  // One step on whole inputs, by name: updates the variables and returns the outputs.  Fails with
  // kInvalidArgument when an input is missing, and with kInternal when devices differ in an output.
  Result<NamedNumbers> Step(const NamedNumbers& inputs);

 private:
  VirtualDevices(const Graph& whole, const Partitioned& parts);
  Numbers PartOf(ValueId leaf, const Numbers& whole, int64_t device) const;
  bool IsFirstSummand(ValueId variable, int64_t device) const;
  Numbers SumOfParts(ValueId variable, int64_t device) const;
  Status GiveInputs(const NamedNumbers& inputs);
  void RunNode(const Node& node);
  void RunCollective(const Node& node);
  Numbers& At(int64_t device, ValueId local) {
    return values_[static_cast<size_t>(device)][static_cast<size_t>(local)];
  }

  const Graph& whole_;
  const Partitioned& parts_;
  const int64_t devices_;
  std::vector<std::map<ValueId, Numbers>> variables_;  // by device, by value of `whole`
  std::vector<std::vector<Numbers>> values_;           // by device, by value of the local graph
};

// A graph on one device, in the same arithmetic.
Partitioned OnOneDevice(const Graph& graph);

}  // namespace ridge
