// `ridge devices`: the catalog of devices, and what it knows of one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/verbs.h"
#include "ridge/plan/hardware/cluster.h"
#include "ridge/plan/hardware/hardware.h"
#include "ridge/report/table.h"

namespace ridge::cli {
namespace {

struct DevicesVerb {
  std::optional<std::string> device;
  OutputFlags output;
  bool json = false;
  bool toml = false;
};

using Number = Hardware::Number;

// "3,352 GB/s"; a question mark where nothing is known.
std::string NumberText(const Number& number, const char* unit) {
  return number ? fmt::format("{:g} {}", *number, unit) : "?";
}

// The dense peak of 16-bit floats: bf16, else f16.
Number HalfTflops(const Hardware& device) {
  return device.bf16_tflops ? device.bf16_tflops : device.fp16_tflops;
}

void PrintTable(const std::vector<Hardware>& devices, const Terminal& terminal) {
  Table table({{"device"},
               {"name"},
               {"memory", Align::kRight},
               {"bandwidth", Align::kRight},
               {"f32", Align::kRight},
               {"16 bits", Align::kRight},
               {"int8", Align::kRight},
               {"power", Align::kRight},
               {"peer link"}});
  for (const Hardware& device : devices) {
    const std::string link =
        device.peer_link.empty() ? "?"
        : device.peer_link_gb_s.value_or(0) > 0
            ? fmt::format("{} {:g} GB/s", device.peer_link, *device.peer_link_gb_s)
            : device.peer_link;
    table.AddRow({device.id, device.name, NumberText(device.memory_gb, "GB"),
                  NumberText(device.memory_gb_s, "GB/s"), NumberText(device.fp32_tflops, "TFLOP/s"),
                  NumberText(HalfTflops(device), "TFLOP/s"), NumberText(device.int8_tops, "TOP/s"),
                  NumberText(device.power_w, "W"), link});
  }
  PrintData(table.ToText(terminal, /*indent=*/0));
}

template <typename Value>
nlohmann::ordered_json OrNull(const std::optional<Value>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

nlohmann::ordered_json DeviceJson(const Hardware& device) {
  nlohmann::ordered_json json = {{"id", device.id}};
  for (const auto& [key, member] : HardwareTexts()) {
    const std::string& text = device.*member;
    if (text.empty()) {
      json[key] = nullptr;
    } else {
      json[key] = text;
    }
  }
  for (const auto& [key, member] : HardwareNumbers()) {
    json[key] = OrNull(device.*member);
  }
  for (const auto& [key, member] : HardwareFlags()) json[key] = OrNull(device.*member);
  return json;
}

// "67 computed from cores and clock (+0.1 %)"
void AddComputed(const char* what, const Number& computed, const Number& sheet, Table& table) {
  if (!computed) return;
  const std::string against =
      sheet ? fmt::format(" ({:+.1f} % of the sheet's)", (*computed / *sheet - 1) * 100) : "";
  table.AddRow({what, fmt::format("{:.4g} TFLOP/s{}", *computed, against)});
}

void PrintDevice(const Hardware& device, const Terminal& terminal) {
  PrintData(fmt::format("{}  {}\n\n", Styled(device.id, Style::kBold, terminal), device.name));
  Table table({{""}, {""}});
  for (const auto& [key, member] : HardwareTexts()) {
    const std::string& text = device.*member;
    const bool told_below = key == std::string_view("source") ||
                            key == std::string_view("confidence") ||
                            key == std::string_view("notes") || key == std::string_view("name");
    if (!text.empty() && !told_below) table.AddRow({key, text});
  }
  for (const auto& [key, member] : HardwareNumbers()) {
    if (device.*member) table.AddRow({key, fmt::format("{:g}", *(device.*member))});
  }
  for (const auto& [key, member] : HardwareFlags()) {
    if (device.*member) table.AddRow({key, *(device.*member) ? "yes" : "no"});
  }
  AddComputed("f32 from cores and clock", device.ComputedFp32Tflops(), device.fp32_tflops, table);
  AddComputed("f16 from units and clock", device.ComputedFp16Tflops(), device.fp16_tflops, table);
  PrintData(table.ToText(terminal));
  const std::vector<std::string> unknown = UnknownKeys(device);
  if (!unknown.empty()) PrintData(fmt::format("\nnot known: {}\n", fmt::join(unknown, ", ")));
  if (!device.notes.empty()) PrintData(fmt::format("notes: {}\n", device.notes));
  if (!device.source.empty())
    PrintData(fmt::format("source ({}): {}\n", device.confidence, device.source));
}

nlohmann::ordered_json ClusterJson(const Cluster& cluster) {
  return {{"id", cluster.id},
          {"name", cluster.name},
          {"device", cluster.device},
          {"devices_per_node", OrNull(cluster.devices_per_node)},
          {"nodes", OrNull(cluster.nodes)},
          {"network", cluster.network},
          {"adapters", OrNull(cluster.adapters)},
          {"adapter_gb_s", OrNull(cluster.adapter_gb_s)},
          {"confidence", cluster.confidence},
          {"source", cluster.source},
          {"notes", cluster.notes}};
}

template <typename Row>
void PrintJsonList(const std::vector<Row>& rows, nlohmann::ordered_json (*json_of)(const Row&)) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const Row& row : rows) json.push_back(json_of(row));
  PrintData(json.dump(1) + "\n");
}

Result<int> RunClusters(const DevicesVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  if (verb.json) {
    PrintJsonList(ClusterCatalog(), ClusterJson);
    return kExitOk;
  }
  Table table({{"cluster"}, {"name"}, {"node"}, {"network of a node", Align::kRight}, {""}});
  for (const Cluster& cluster : ClusterCatalog()) {
    table.AddRow({cluster.id, cluster.name,
                  fmt::format("{} x {}", cluster.per_node(), cluster.device),
                  fmt::format("{:g} GB/s", cluster.node_bytes_per_s() / 1e9), cluster.network});
  }
  PrintData(table.ToText(terminal, /*indent=*/0));
  return kExitOk;
}

Result<int> RunDevices(const DevicesVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  if (verb.json) {
    PrintJsonList(HardwareCatalog(), DeviceJson);
  } else {
    PrintTable(HardwareCatalog(), terminal);
  }
  return kExitOk;
}

Result<int> RunShow(const DevicesVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  RIDGE_ASSIGN_OR_RETURN(const Hardware device, FindHardware(*verb.device));
  if (verb.toml) {
    PrintData(HardwareToml(device));
  } else if (verb.json) {
    PrintData(DeviceJson(device).dump(1) + "\n");
  } else {
    PrintDevice(device, terminal);
  }
  return kExitOk;
}

}  // namespace

VerbBody AddDevices(CLI::App& app) {
  auto verb = std::make_shared<DevicesVerb>();
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  return [verb] { return RunDevices(*verb); };
}

VerbBody AddDevicesClusters(CLI::App& app) {
  auto verb = std::make_shared<DevicesVerb>();
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  return [verb] { return RunClusters(*verb); };
}

VerbBody AddDevicesShow(CLI::App& app) {
  auto verb = std::make_shared<DevicesVerb>();
  AddArgument(app, "DEVICE", verb->device,
              "A device of the catalog (h100-sxm), or a file of your own: my.toml, my.toml:ID")
      ->required();
  AddSwitch(app, "--toml", verb->toml, "Print a table that a file of your own can begin with")
      ->group(kOutputGroup);
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup)->excludes("--toml");
  AddColorFlag(app, verb->output);
  return [verb] { return RunShow(*verb); };
}

}  // namespace ridge::cli
