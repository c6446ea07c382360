#include "ridge/plan/hardware/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "ridge/plan/hardware/collective_list.h"
#include "ridge/plan/hardware/embedded_list.h"

namespace ridge {
namespace {

// ---- measured

struct Point {
  double bytes, bus_bytes_per_s;
};

struct MeasuredRow {
  std::vector<std::string> devices;
  int64_t count = 0;
  double bus_bytes_per_s = 0;
  std::optional<double> latency_s;
  std::vector<Point> points;  // of growing bytes; empty: latency and rate say all
  std::string source;
};

std::vector<double> NumbersAt(const toml::table& row, std::string_view key) {
  std::vector<double> numbers;
  const toml::array* list = row[key].as_array();
  if (list == nullptr) return numbers;
  for (const toml::node& node : *list) numbers.push_back(node.value<double>().value_or(0));
  return numbers;
}

MeasuredRow RowOf(const toml::table& table) {
  constexpr double kGiga = 1e9, kMiB = 1 << 20;
  MeasuredRow row;
  row.devices = ListAt(table, "devices");
  row.count = table["count"].value<int64_t>().value_or(0);
  row.bus_bytes_per_s = table["bus_gb_s"].value<double>().value_or(0) * kGiga;
  if (const auto latency_us = table["latency_us"].value<double>())
    row.latency_s = *latency_us * 1e-6;
  const std::vector<double> mib = NumbersAt(table, "mib"), rates = NumbersAt(table, "bus_gb_s_at");
  RIDGE_CHECK(mib.size() == rates.size(), "collectives.toml: mib and bus_gb_s_at differ in length");
  for (size_t p = 0; p < mib.size(); ++p) row.points.push_back({mib[p] * kMiB, rates[p] * kGiga});
  row.source = TextAt(table, "source");
  return row;
}

const std::vector<MeasuredRow>& MeasuredRows() {
  static const std::vector<MeasuredRow> all =
      ReadEmbeddedList(kCollectiveList, "collectives.toml", "all_reduce", RowOf);
  return all;
}

const MeasuredRow* FindRow(const Hardware& hardware, int64_t count) {
  for (const MeasuredRow& row : MeasuredRows()) {
    const auto& names = row.devices;
    if (row.count == count && std::find(names.begin(), names.end(), hardware.id) != names.end())
      return &row;
  }
  return nullptr;
}

// Bytes that each device sends and receives, over the bytes of the sum.
double BusFactor(int64_t count) {
  return 2 * static_cast<double>(count - 1) / static_cast<double>(count);
}

// Rates between two measured sizes by the logarithm of the size; smaller sums take what the
// smallest one took.
double SecondsByPoints(const std::vector<Point>& points, double bytes, double factor) {
  bytes = std::max(bytes, points.front().bytes);
  const auto above = std::find_if(points.begin(), points.end(),
                                  [&](const Point& point) { return point.bytes >= bytes; });
  if (above == points.end()) return bytes * factor / points.back().bus_bytes_per_s;
  double rate = above->bus_bytes_per_s;
  if (above != points.begin()) {
    const Point& below = above[-1];
    const double share = std::log(bytes / below.bytes) / std::log(above->bytes / below.bytes);
    rate = below.bus_bytes_per_s + share * (above->bus_bytes_per_s - below.bus_bytes_per_s);
  }
  return bytes * factor / rate;
}

// ---- modelled

// NCCL's latencies of the protocol "Simple": a base, and a step over each kind of link.
constexpr double kBaseS = 8.4e-6, kPeerStepS = 3.4e-6, kHostStepS = 5.7e-6, kTreeStepS = 4e-6,
                 kNetworkStepS = 14e-6;
constexpr double kTreeRateShare = 0.92 * 0.5;  // of the bus: each byte goes up and down
// Over the link's rate: 230 of 300 GB/s on A100s, 370 of 450 on a ring of H100s; over PCIe 28 to 35
// of 63 on RTX 5090s, 8 to 21 of 31.5 on A100 cards (nccl-tests); 0.9 of a network (Calculon).
constexpr double kRingShare = 0.82;  // at most, where nothing but the devices adds
constexpr double kPeerShare = 0.75, kHostShare = 0.4, kNetworkShare = 0.9;

// What a tree of the protocol "Simple" reaches of its rate, by log2(bytes / 64), in NCCL's table.
double TreeShare(double bytes) {
  constexpr double kShares[] = {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
                                .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9};
  const double at = std::log2(std::max(64.0, bytes) / 64);
  return kShares[std::min(static_cast<size_t>(at), std::size(kShares) - 1)];
}

struct Link {
  double bytes_per_s = 0;
  double step_s = 0;
};

// As its sheet has it.
std::optional<Link> StatedLink(const DeviceGroup& group) {
  const Hardware& hardware = *group.hardware;
  if (HasPeerLink(hardware, group.per_node))
    return Link{*hardware.peer_link_gb_s * 1e9 * kPeerShare, kPeerStepS};
  if (hardware.host_link_gb_s) return Link{*hardware.host_link_gb_s * 1e9 * kHostShare, kHostStepS};
  return std::nullopt;
}

// With the rate that was measured, if any was.
std::optional<Link> LinkWithin(const DeviceGroup& group) {
  const MeasuredRow* row = FindRow(*group.hardware, group.per_node);
  if (row == nullptr) return StatedLink(group);
  const bool has_peer = HasPeerLink(*group.hardware, group.per_node);
  return Link{row->bus_bytes_per_s, has_peer ? kPeerStepS : kHostStepS};
}

// Within one machine.
std::optional<double> SecondsWithin(const DeviceGroup& group, double bytes) {
  const double factor = BusFactor(group.per_node);
  const MeasuredRow* row = FindRow(*group.hardware, group.per_node);
  if (row != nullptr && !row->points.empty()) return SecondsByPoints(row->points, bytes, factor);
  const std::optional<Link> link = LinkWithin(group);
  if (!link) return std::nullopt;
  const double steps = 2 * static_cast<double>(group.per_node - 1);
  const double latency_s = kBaseS + steps * link->step_s;
  return (row != nullptr ? row->latency_s.value_or(latency_s) : latency_s) +
         bytes * factor / link->bytes_per_s;
}

// The rate and the latency of `count - 1` steps of a ring through all devices.
std::optional<Link> RingLink(const DeviceGroup& group) {
  Link ring = {std::numeric_limits<double>::infinity(), 0};
  const auto network_steps = static_cast<double>(group.nodes - 1);
  if (group.per_node > 1) {
    const std::optional<Link> within = LinkWithin(group);
    if (!within) return std::nullopt;
    ring = *within;
    if (HasPeerLink(*group.hardware, group.per_node))
      ring.bytes_per_s =
          std::min(ring.bytes_per_s, *group.hardware->peer_link_gb_s * 1e9 * kRingShare);
  }
  if (group.nodes > 1) {
    if (group.node_bytes_per_s <= 0) return std::nullopt;
    ring.bytes_per_s = std::min(ring.bytes_per_s, group.node_bytes_per_s * kNetworkShare);
  }
  const double steps = static_cast<double>(group.count() - 1) - network_steps;
  ring.step_s = kBaseS + steps * ring.step_s + network_steps * kNetworkStepS;
  return ring;
}

// One round of a ring: each device sends what it has to the next one, count - 1 times.  An
// all-reduce is two.
std::optional<double> RingRoundSeconds(const DeviceGroup& group, double bytes) {
  const MeasuredRow* row = group.nodes == 1 ? FindRow(*group.hardware, group.per_node) : nullptr;
  if (row != nullptr && (row->latency_s || !row->points.empty()))  // of a ring: no sum in switches
    return *SecondsWithin(group, bytes) / 2;
  const std::optional<Link> ring = RingLink(group);
  if (!ring) return std::nullopt;
  const auto count = static_cast<double>(group.count());
  return ring->step_s + bytes * (count - 1) / count / ring->bytes_per_s;
}

// To the next device; where some of them are on other machines, those are waited for.
std::optional<double> SendSeconds(const DeviceGroup& group, double bytes) {
  if (group.nodes > 1) {
    if (group.node_bytes_per_s <= 0) return std::nullopt;
    return kBaseS + kNetworkStepS + bytes / (group.node_bytes_per_s * kNetworkShare);
  }
  const std::optional<Link> link = StatedLink(group);
  if (!link) return std::nullopt;
  return kBaseS + link->step_s + bytes / link->bytes_per_s;
}

// A ring through all devices, and a tree of the machines with a chain within each.
std::optional<double> SecondsBetween(const DeviceGroup& group, double bytes) {
  double bus = group.node_bytes_per_s * kNetworkShare, step_s = 0;
  if (bus <= 0) return std::nullopt;
  if (group.per_node > 1) {
    const std::optional<Link> within = LinkWithin(group);
    if (!within) return std::nullopt;
    bus = std::min(bus, within->bytes_per_s);
    step_s = within->step_s;
  }
  const auto nodes = static_cast<double>(group.nodes), count = static_cast<double>(group.count());
  const double network_steps = 2 * (nodes - 1), steps = 2 * (count - 1);
  const double ring_s = kBaseS + (steps - network_steps) * step_s + network_steps * kNetworkStepS +
                        bytes * BusFactor(group.count()) / bus;
  const double chain_s = static_cast<double>(group.per_node - 1) * kTreeStepS;
  const double tree_s = kBaseS + 2 * (chain_s + std::log2(nodes) * kNetworkStepS) +
                        bytes / (bus * kTreeRateShare * TreeShare(bytes));
  return std::min(ring_s, tree_s);
}

}  // namespace

DeviceGroup StridedGroup(const DeviceGroup& all, int64_t stride, int64_t size) {
  DeviceGroup group = all;
  group.per_node = std::clamp<int64_t>(all.per_node / stride, 1, size);
  group.nodes = (size + group.per_node - 1) / group.per_node;
  const int64_t sharing = std::max<int64_t>(1, all.per_node / group.per_node);
  group.node_bytes_per_s = all.node_bytes_per_s / static_cast<double>(sharing);
  return group;
}

bool HasPeerLink(const Hardware& hardware, int64_t count) {
  if (hardware.peer_link_gb_s.value_or(0) <= 0) return false;
  return !hardware.nvlink_bridge.value_or(false) || count == 2;
}

std::optional<double> AllReduceSeconds(const DeviceGroup& group, double bytes) {
  if (group.count() < 2) return 0;
  return group.nodes > 1 ? SecondsBetween(group, bytes) : SecondsWithin(group, bytes);
}

std::optional<double> CollectiveSeconds(const DeviceGroup& group, CollectiveKind kind,
                                        double bytes) {
  if (group.count() < 2) return 0;
  if (kind == CollectiveKind::kAllReduce) return AllReduceSeconds(group, bytes);
  return kind == CollectiveKind::kSend ? SendSeconds(group, bytes) : RingRoundSeconds(group, bytes);
}

std::string AllReduceSource(const DeviceGroup& group) {
  const MeasuredRow* row = group.nodes == 1 ? FindRow(*group.hardware, group.per_node) : nullptr;
  return row != nullptr ? "measured: " + row->source : "modelled";
}

}  // namespace ridge
