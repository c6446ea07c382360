// Mesh: devices as a grid with named axes, "d=2,t=4".
//
// Device numbers count along the last axis first, so its devices are neighbours: an axis with much
// traffic (tensor parallel) goes last.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

struct MeshAxis {
  std::string name;  // a letter, then letters, digits and _
  int64_t size = 1;

  bool operator==(const MeshAxis&) const = default;
};

struct Mesh {
  std::vector<MeshAxis> axes;

  int64_t devices() const;
  int64_t size(int axis) const { return axes[static_cast<size_t>(axis)].size; }
  int Find(std::string_view name) const;  // -1 when no axis has this name
  // Where a device is on each axis.  REQUIRES: 0 <= device < devices().
  std::vector<int64_t> CoordinatesOf(int64_t device) const;
  int64_t DeviceAt(const std::vector<int64_t>& coordinates) const;
  // The devices that differ from this one along `axis` only, itself too, in order.
  std::vector<int64_t> PeersOf(int64_t device, int axis) const;

  bool operator==(const Mesh&) const = default;
};

// A device of a mesh, as it sees itself.
struct MeshPlace {
  Mesh mesh;
  int64_t device = 0;

  int64_t coordinate(int axis) const {
    return mesh.CoordinatesOf(device)[static_cast<size_t>(axis)];
  }
  bool operator==(const MeshPlace&) const = default;
};

inline constexpr int64_t kMostDevices = 65536;

// Fails with kInvalidArgument; the message says what is there against what should be.
Result<Mesh> ParseMesh(const std::string& text);
std::string MeshText(const Mesh& mesh);  // "d=2,t=4"

}  // namespace ridge
