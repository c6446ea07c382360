#include "ridge/plan/choose/parameter_server.h"

namespace ridge {

std::optional<SumWays> CompareSums(const DeviceGroup& group, double bytes) {
  SumWays ways;
  ways.devices = group.count();
  ways.bytes = bytes;
  if (group.count() < 2) return ways;
  const auto count = static_cast<double>(group.count());
  ways.sent_bytes = 2 * (count - 1) / count * bytes;
  ways.all_reduce_source = AllReduceSource(group);
  DeviceGroup machine = group;
  machine.nodes = 1;
  const bool is_one = group.nodes == 1;
  const auto senders = static_cast<double>(is_one ? group.per_node : group.nodes);
  ways.port_bytes = 2 * senders * bytes;
  const std::optional<double> all_reduce_s = AllReduceSeconds(group, bytes);
  const std::optional<double> within_s = is_one ? 0 : AllReduceSeconds(machine, bytes);
  const std::optional<double> port_s =
      CollectiveSeconds(group, CollectiveKind::kSend, ways.port_bytes);
  if (!all_reduce_s || !within_s || !port_s) return std::nullopt;
  ways.all_reduce_s = *all_reduce_s;
  ways.server_s = *within_s + *port_s;
  return ways;
}

}  // namespace ridge
