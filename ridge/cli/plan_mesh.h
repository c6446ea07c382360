// `ridge plan MODEL --mesh d=2,t=4`: what a rank of a mesh keeps and sends, and what that takes.
#pragma once
#include <optional>
#include <string>

#include "ridge/plan/hardware/cluster.h"
#include "ridge/report/terminal.h"
#include "ridge/train/options/machine.h"
#include "ridge/train/options/options.h"

namespace ridge::cli {

struct MeshFlags {
  std::optional<std::string> mesh, shard;
};

// Where the devices of a mesh are.
struct MeshTarget {
  std::string device;              // `--device` of one of them
  std::optional<Cluster> cluster;  // none: all are in one machine

  std::string name() const { return cluster ? cluster->id : device; }
};

// Of `--on`: a cluster, or a device.  Fails with kInvalidArgument for several.
Result<MeshTarget> ParseMeshTarget(const std::string& on);

// `devices` of it as nodes.  Fails with kInvalidArgument where it has fewer, or where they are no
// whole nodes.
Result<DeviceGroup> DevicesAt(const MeshTarget& place, const Hardware& hardware, int64_t devices);

// Of a mixed precision by another program, 16 bits are sent; ridge sends its f32.
double WireShare(const Machine& machine, const std::string& precision);

// Plans and prints; with `hardware` (of the place; nullptr: this machine) seconds too.  Fails as
// PlanMeshJob does, and with kOutOfMemory where a rank needs more than --fit allows.
Status PrintMeshPlan(const TrainOptions& options, const MeshFlags& flags, const MeshTarget& place,
                     const Hardware* hardware, const Machine& machine, bool json,
                     const Terminal& terminal);

}  // namespace ridge::cli
