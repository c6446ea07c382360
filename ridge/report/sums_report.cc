#include "ridge/report/sums_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ridge/core/units.h"
#include "ridge/report/table.h"

namespace ridge {
namespace {

using Json = nlohmann::ordered_json;

std::string BytesText(double bytes) { return FormatBytes(static_cast<int64_t>(bytes)); }

Json WaysJson(const SumWays& ways) {
  return {{"devices", ways.devices},
          {"all_reduce",
           {{"sent_bytes", ways.sent_bytes},
            {"s", ways.all_reduce_s},
            {"source", ways.all_reduce_source}}},
          {"server", {{"port_bytes", ways.port_bytes}, {"s", ways.server_s}}}};
}

}  // namespace

std::string SumsReport(const SumsTable& table, const Terminal& terminal) {
  Table rows({{"devices", Align::kRight},
              {"each sends", Align::kRight},
              {"all-reduce", Align::kRight},
              {"server's port", Align::kRight},
              {"server", Align::kRight},
              {"over it", Align::kRight},
              {"all-reduce is"}});
  for (const SumWays& ways : table.ways) {
    if (ways.devices < 2) continue;
    rows.AddRow(
        {std::to_string(ways.devices), BytesText(ways.sent_bytes), FormatSeconds(ways.all_reduce_s),
         BytesText(ways.port_bytes), FormatSeconds(ways.server_s),
         fmt::format("{:.2f} x", ways.server_s / ways.all_reduce_s), ways.all_reduce_source});
  }
  return fmt::format("{}: {} of gradients an update, alone\n\n{}", table.title,
                     BytesText(table.ways.front().bytes), rows.ToText(terminal));
}

std::string SumsJson(const std::vector<SumsTable>& tables) {
  Json json = Json::array();
  for (const SumsTable& table : tables) {
    Json ways = Json::array();
    for (const SumWays& of : table.ways) ways.push_back(WaysJson(of));
    json.push_back({{"title", table.title},
                    {"gradient_bytes", table.ways.front().bytes},
                    {"ways", std::move(ways)}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ridge
