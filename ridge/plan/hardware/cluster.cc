#include "ridge/plan/hardware/cluster.h"

#include <fmt/format.h>

#include <cmath>

#include "ridge/plan/hardware/catalog_file.h"
#include "ridge/plan/hardware/cluster_list.h"

namespace ridge {
namespace {

constexpr const char* kBuiltIn = "clusters.toml";

struct TextKey {
  const char* key;
  std::string Cluster::*member;
};
constexpr TextKey kTexts[] = {{"name", &Cluster::name},       {"device", &Cluster::device},
                              {"network", &Cluster::network}, {"confidence", &Cluster::confidence},
                              {"source", &Cluster::source},   {"notes", &Cluster::notes}};

struct NumberKey {
  const char* key;
  Cluster::Number Cluster::*member;
};
constexpr NumberKey kNumbers[] = {{"devices_per_node", &Cluster::devices_per_node},
                                  {"nodes", &Cluster::nodes},
                                  {"adapters", &Cluster::adapters},
                                  {"adapter_gb_s", &Cluster::adapter_gb_s}};

CatalogForm FormWith(std::vector<std::string> known) {
  CatalogForm form = {"cluster",
                      "my-cluster",
                      "`ridge devices clusters --json` has all keys",
                      {},
                      std::move(known)};
  for (const TextKey& text : kTexts) form.keys.push_back({text.key, CatalogType::kText});
  for (const NumberKey& number : kNumbers) form.keys.push_back({number.key, CatalogType::kNumber});
  return form;
}

bool IsCount(const Cluster::Number& number) {
  constexpr double kMost = 1 << 20;
  return !number || (*number >= 1 && *number <= kMost && std::floor(*number) == *number);
}

Status Check(const Cluster& cluster, const std::string& path) {
  const auto bad = [&](const std::string& what) {
    return Status(ErrorCode::kInvalidData, fmt::format("{}: {} {}", path, cluster.id, what));
  };
  if (cluster.device.empty())
    return bad("has no device. hint: device = \"h100-sxm\", one of `ridge devices`");
  if (cluster.node_bytes_per_s() <= 0)
    return bad(
        "has no adapter_gb_s, the rate of a node's network adapter in one direction. hint: "
        "adapter_gb_s = 12.5 is 100 Gb/s");
  if (!IsCount(cluster.devices_per_node) || !IsCount(cluster.nodes) || !IsCount(cluster.adapters))
    return bad("has a number of devices, nodes or adapters that is no whole number above 0");
  return Status();
}

Result<Cluster> ClusterOf(const CatalogTable& table, const std::vector<Cluster>& known,
                          const std::string& path) {
  Cluster cluster;
  if (!table.like.empty()) cluster = *FindById(known, table.like);
  cluster.id = table.id;
  for (const CatalogValue& value : table.values) {
    for (const TextKey& text : kTexts) {
      if (value.key == text.key) cluster.*text.member = std::get<std::string>(value.value);
    }
    for (const NumberKey& number : kNumbers) {
      if (value.key == number.key) cluster.*number.member = std::get<double>(value.value);
    }
  }
  if (cluster.name.empty()) cluster.name = table.id;
  RIDGE_RETURN_IF_ERROR(Check(cluster, path));
  return cluster;
}

Result<std::vector<Cluster>> Parse(std::string_view text, const std::string& path,
                                   const std::vector<Cluster>& known) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<CatalogTable> tables,
                         ParseCatalog(text, path, FormWith(IdsOf(known))));
  std::vector<Cluster> clusters;
  for (const CatalogTable& table : tables) {
    RIDGE_ASSIGN_OR_RETURN(Cluster cluster, ClusterOf(table, known, path));
    clusters.push_back(std::move(cluster));
  }
  return clusters;
}

}  // namespace

const std::vector<Cluster>& ClusterCatalog() {
  static const std::vector<Cluster> kCatalog = [] {
    Result<std::vector<Cluster>> parsed = Parse(kClusterList, kBuiltIn, {});
    RIDGE_CHECK(parsed.ok(), parsed.status().message());
    return std::move(*parsed);
  }();
  return kCatalog;
}

Result<std::vector<Cluster>> ParseClusters(std::string_view text, const std::string& path) {
  return Parse(text, path, ClusterCatalog());
}

Result<Cluster> FindCluster(const std::string& text) {
  return FindEntry<Cluster>(text, {"cluster", "`ridge devices clusters` lists all"},
                            ClusterCatalog(), ParseClusters);
}

}  // namespace ridge
