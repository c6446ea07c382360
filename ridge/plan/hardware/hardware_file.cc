// Devices of catalog files.
#include "ridge/plan/hardware/catalog_file.h"
#include "ridge/plan/hardware/device_catalog.h"
#include "ridge/plan/hardware/hardware.h"

namespace ridge {
namespace {

constexpr const char* kBuiltIn = "devices.toml";

CatalogForm FormWith(std::vector<std::string> known) {
  CatalogForm form = {"device",
                      "my-gpu",
                      "`ridge devices show h100-sxm --toml` has most keys",
                      {},
                      std::move(known)};
  for (const HardwareText& text : HardwareTexts())
    form.keys.push_back({text.key, CatalogType::kText});
  for (const HardwareNumber& number : HardwareNumbers())
    form.keys.push_back({number.key, CatalogType::kNumber});
  for (const HardwareFlag& flag : HardwareFlags())
    form.keys.push_back({flag.key, CatalogType::kFlag});
  return form;
}

void Take(const CatalogValue& value, Hardware& hardware) {
  for (const HardwareText& text : HardwareTexts()) {
    if (value.key == text.key) hardware.*text.member = std::get<std::string>(value.value);
  }
  for (const HardwareNumber& number : HardwareNumbers()) {
    if (value.key == number.key) hardware.*number.member = std::get<double>(value.value);
  }
  for (const HardwareFlag& flag : HardwareFlags()) {
    if (value.key == flag.key) hardware.*flag.member = std::get<bool>(value.value);
  }
}

// What `like` names stays where the table has nothing else.
Hardware DeviceOf(const CatalogTable& table, const std::vector<Hardware>& known) {
  Hardware hardware;
  if (!table.like.empty()) hardware = *FindById(known, table.like);
  hardware.id = table.id;
  for (const CatalogValue& value : table.values) Take(value, hardware);
  if (hardware.name.empty()) hardware.name = table.id;
  return hardware;
}

Result<std::vector<Hardware>> Parse(std::string_view text, const std::string& path,
                                    const std::vector<Hardware>& known) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<CatalogTable> tables,
                         ParseCatalog(text, path, FormWith(IdsOf(known))));
  std::vector<Hardware> devices;
  for (const CatalogTable& table : tables) devices.push_back(DeviceOf(table, known));
  return devices;
}

}  // namespace

Result<std::vector<Hardware>> ParseHardware(std::string_view text, const std::string& path) {
  return Parse(text, path, HardwareCatalog());
}

const std::vector<Hardware>& HardwareCatalog() {
  static const std::vector<Hardware> kCatalog = [] {
    Result<std::vector<Hardware>> parsed = Parse(kDeviceCatalog, kBuiltIn, {});
    RIDGE_CHECK(parsed.ok(), parsed.status().message());
    return std::move(*parsed);
  }();
  return kCatalog;
}

Result<Hardware> FindHardware(const std::string& text) {
  return FindEntry<Hardware>(text, {"device", "`ridge devices` lists all"}, HardwareCatalog(),
                             ParseHardware);
}

}  // namespace ridge
