// Clusters: machines of equal devices and the network between them, and the catalog of such.
//
// A catalog is a TOML file with one table a cluster.  The program carries one (clusters.toml), with
// the source of each entry; a user's own file has the same form.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/status.h"
#include "ridge/plan/hardware/hardware.h"

namespace ridge {

// Members are named as the keys of the file, units included.
struct Cluster {
  using Number = std::optional<double>;

  std::string id;  // "dgx-h100": the table's name
  std::string name, network;
  std::string device;                     // its id, or a file: "my.toml:ID"
  std::string source, confidence, notes;  // confidence: datasheet, secondary or recalled
  Number devices_per_node;                // null: one
  Number nodes;                           // that there are; null: as many as asked for
  Number adapters, adapter_gb_s;          // of a node; of one in one direction

  int64_t per_node() const { return static_cast<int64_t>(devices_per_node.value_or(1)); }
  // Of a node, all adapters, one direction; 0: not known.
  double node_bytes_per_s() const { return adapters.value_or(1) * adapter_gb_s.value_or(0) * 1e9; }
};

// The program's own catalog, in the order of its file.
const std::vector<Cluster>& ClusterCatalog();

// The clusters of a TOML text.  Fails as ParseHardware, and for a cluster without a device, without
// a rate of its adapters or with no whole number of devices and nodes.
Result<std::vector<Cluster>> ParseClusters(std::string_view text, const std::string& path);

// A cluster of the program's catalog by its id, or of a file: "my.toml", or "my.toml:ID" when it
// has several.  Fails as FindHardware.
Result<Cluster> FindCluster(const std::string& text);

}  // namespace ridge
