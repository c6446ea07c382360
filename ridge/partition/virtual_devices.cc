#include "ridge/partition/virtual_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ridge/graph/interpret.h"

namespace ridge {
namespace {

// One dimension of an array as outer * blocks runs for each device.
struct Runs {
  int64_t count, length, ranks;

  // `part`: a device's part, of these dims.
  Runs(const Dims& part, size_t dim, int64_t blocks, int64_t devices) : ranks(devices) {
    const int64_t elements = ElementCount(part);
    const int64_t inner =
        ElementCount(Dims(part.begin() + static_cast<std::ptrdiff_t>(dim) + 1, part.end()));
    length = part[dim] / blocks * inner;
    count = length == 0 ? 0 : elements / length;
  }
};

Numbers CutOut(const Numbers& whole, const Runs& runs, int64_t coordinate) {
  Numbers part;
  part.reserve(static_cast<size_t>(runs.count * runs.length));
  for (int64_t r = 0; r < runs.count; ++r) {
    const auto begin = whole.begin() + (r * runs.ranks + coordinate) * runs.length;
    part.insert(part.end(), begin, begin + runs.length);
  }
  return part;
}

Numbers Join(const std::vector<const Numbers*>& parts, const Runs& runs) {
  Numbers whole;
  whole.reserve(static_cast<size_t>(runs.count * runs.length * runs.ranks));
  for (int64_t r = 0; r < runs.count; ++r) {
    for (const Numbers* part : parts) {
      const auto begin = part->begin() + r * runs.length;
      whole.insert(whole.end(), begin, begin + runs.length);
    }
  }
  return whole;
}

Numbers Reduce(const std::vector<const Numbers*>& parts, const std::string& how) {
  Numbers result = *parts[0];
  for (size_t p = 1; p < parts.size(); ++p) {
    for (size_t i = 0; i < result.size(); ++i) {
      const double x = (*parts[p])[i];
      double& y = result[i];
      if (how == "sum") {
        y += x;
      } else if (std::isnan(x) || (how == "max" ? x > y : x < y)) {
        y = x;
      }
    }
  }
  return result;
}

size_t DimOf(const Node& node, const char* attr) {
  return static_cast<size_t>(node.attrs.integer(attr));
}

bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool SameNumbers(const Numbers& a, const Numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), SameNumber);
}

}  // namespace

VirtualDevices::VirtualDevices(const Graph& whole, const Partitioned& parts)
    : whole_(whole), parts_(parts), devices_(parts.mesh.devices()) {
  variables_.resize(static_cast<size_t>(devices_));
  values_.resize(static_cast<size_t>(devices_));
}

Result<VirtualDevices> VirtualDevices::Create(const Graph& whole, const Partitioned& parts,
                                              uint64_t seed) {
  VirtualDevices devices(whole, parts);
  for (ValueKind kind : {ValueKind::kParameter, ValueKind::kState}) {
    for (ValueId id : whole.ValuesOfKind(kind)) {
      RIDGE_ASSIGN_OR_RETURN(const Tensor start, InitialValue(whole.value(id), seed));
      devices.SetVariable(id, NumbersOf(start));
    }
  }
  return devices;
}

Numbers VirtualDevices::PartOf(ValueId leaf, const Numbers& whole, int64_t device) const {
  Numbers part;
  for (int64_t place :
       PlacesOfPart(whole_.type(leaf).dims, parts_.splits[static_cast<size_t>(leaf)], parts_.mesh,
                    parts_.mesh.CoordinatesOf(device)))
    part.push_back(whole[static_cast<size_t>(place)]);
  return part;
}

bool VirtualDevices::IsFirstSummand(ValueId variable, int64_t device) const {
  const std::vector<int64_t> coordinates = parts_.mesh.CoordinatesOf(device);
  const auto& pending = parts_.splits[static_cast<size_t>(variable)].pending;
  return std::all_of(pending.begin(), pending.end(), [&](const PendingAxis& p) {
    return coordinates[static_cast<size_t>(p.axis)] == 0;
  });
}

// Of what is pending the first device has all, the others nothing.
void VirtualDevices::SetVariable(ValueId variable, const Numbers& whole) {
  for (int64_t d = 0; d < devices_; ++d) {
    Numbers& part = variables_[static_cast<size_t>(d)][variable];
    part = PartOf(variable, whole, d);
    if (!IsFirstSummand(variable, d)) std::fill(part.begin(), part.end(), 0.0);
  }
}

// What a device has where it is pending: the sum of what those along the axes have.
Numbers VirtualDevices::SumOfParts(ValueId variable, int64_t device) const {
  std::vector<int64_t> group = {device};
  for (const PendingAxis& p : parts_.splits[static_cast<size_t>(variable)].pending) {
    std::vector<int64_t> larger;
    for (int64_t d : group)
      for (int64_t peer : parts_.mesh.PeersOf(d, p.axis)) larger.push_back(peer);
    group = std::move(larger);
  }
  std::vector<const Numbers*> parts;
  for (int64_t d : group) parts.push_back(&variables_[static_cast<size_t>(d)].at(variable));
  return Reduce(parts, "sum");
}

Result<Numbers> VirtualDevices::Variable(ValueId variable) const {
  const Dims& dims = whole_.type(variable).dims;
  Numbers whole(static_cast<size_t>(ElementCount(dims)));
  std::vector<bool> known(whole.size(), false);
  for (int64_t d = 0; d < devices_; ++d) {
    const Numbers part = SumOfParts(variable, d);
    const std::vector<int64_t> places =
        PlacesOfPart(dims, parts_.splits[static_cast<size_t>(variable)], parts_.mesh,
                     parts_.mesh.CoordinatesOf(d));
    for (size_t i = 0; i < places.size(); ++i) {
      const auto at = static_cast<size_t>(places[i]);
      if (known[at] && !SameNumber(whole[at], part[i])) {
        return Status(ErrorCode::kInternal,
                      fmt::format("variable '{}': element {} is {} on device {}, {} before it",
                                  whole_.value(variable).name, at, part[i], d, whole[at]));
      }
      whole[at] = part[i];
      known[at] = true;
    }
  }
  return whole;
}

Status VirtualDevices::GiveInputs(const NamedNumbers& inputs) {
  const Graph& local = parts_.local;
  for (int64_t d = 0; d < devices_; ++d) {
    auto& values = values_[static_cast<size_t>(d)];
    values.assign(local.values().size(), {});
    for (size_t v = 0; v < local.values().size(); ++v) {
      const ValueInfo& info = local.values()[v];
      if (info.kind == ValueKind::kResult) continue;
      const ValueId leaf = whole_.FindValue(info.name);
      if (info.kind == ValueKind::kConstant) {
        values[v] = NumbersOf(info.constant);
      } else if (info.kind != ValueKind::kInput) {
        values[v] = variables_[static_cast<size_t>(d)].at(leaf);
      } else if (leaf == kNoValue) {  // a coordinate
        for (size_t a = 0; a < parts_.mesh.axes.size(); ++a) {
          if (info.name == CoordinateInput(parts_.mesh.axes[a].name))
            values[v] = {static_cast<double>(parts_.mesh.CoordinatesOf(d)[a])};
        }
      } else if (const auto found = inputs.find(info.name); found != inputs.end()) {
        values[v] = PartOf(leaf, found->second, d);
      } else {
        return Status(ErrorCode::kInvalidArgument,
                      fmt::format("input '{}' is not given", info.name));
      }
    }
  }
  return Status();
}

void VirtualDevices::RunNode(const Node& node) {
  for (int64_t d = 0; d < devices_; ++d)
    RunOnNumbers(parts_.local, node, [&](ValueId id) -> Numbers& { return At(d, id); });
}

void VirtualDevices::RunCollective(const Node& node) {
  const Graph& local = parts_.local;
  const ValueId x = node.inputs[0], y = node.outputs[0];
  const int axis = parts_.mesh.Find(node.attrs.text("axis"));
  const int64_t ranks = parts_.mesh.size(axis);
  const Dims &before = local.type(x).dims, &after = local.type(y).dims;
  for (int64_t d = 0; d < devices_; ++d) {
    std::vector<const Numbers*> peers;
    for (int64_t p : parts_.mesh.PeersOf(d, axis)) peers.push_back(&At(p, x));
    const int64_t here = parts_.mesh.CoordinatesOf(d)[static_cast<size_t>(axis)];
    if (node.op == &AllReduceOp()) {
      At(d, y) = Reduce(peers, node.attrs.text("reduce"));
      continue;
    }
    const size_t dim = DimOf(node, "dim");
    const int64_t blocks = node.attrs.integer("blocks");
    if (node.op == &AllGatherOp()) {
      At(d, y) = Join(peers, Runs(before, dim, blocks, ranks));
    } else if (node.op == &ReduceScatterOp()) {
      At(d, y) =
          CutOut(Reduce(peers, node.attrs.text("reduce")), Runs(after, dim, blocks, ranks), here);
    } else {
      const Numbers whole = Join(
          peers, Runs(before, DimOf(node, "from_dim"), node.attrs.integer("from_blocks"), ranks));
      At(d, y) = CutOut(whole, Runs(after, dim, blocks, ranks), here);
    }
  }
}

Result<NamedNumbers> VirtualDevices::Step(const NamedNumbers& inputs) {
  RIDGE_RETURN_IF_ERROR(GiveInputs(inputs));
  const Graph& local = parts_.local;
  for (const Node& node : local.nodes()) {
    if (IsCollective(*node.op)) {
      RunCollective(node);
    } else {
      RunNode(node);
    }
  }
  NamedNumbers outputs;
  for (const GraphOutput& output : local.outputs()) {
    outputs[output.name] = At(0, output.value);
    for (int64_t d = 1; d < devices_; ++d) {
      if (SameNumbers(At(d, output.value), At(0, output.value))) continue;
      return Status(ErrorCode::kInternal,
                    fmt::format("output '{}' differs on devices 0 and {}", output.name, d));
    }
  }
  for (const GraphUpdate& update : local.updates()) {
    const ValueId variable = whole_.FindValue(local.value(update.variable).name);
    for (int64_t d = 0; d < devices_; ++d)
      variables_[static_cast<size_t>(d)][variable] = At(d, update.value);
  }
  return outputs;
}

Partitioned OnOneDevice(const Graph& graph) {
  Partitioned one;
  one.local = graph;
  one.splits.resize(graph.values().size());
  return one;
}

}  // namespace ridge
