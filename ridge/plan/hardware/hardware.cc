#include "ridge/plan/hardware/hardware.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace ridge {
namespace {

using H = Hardware;

constexpr HardwareText kTexts[] = {
    {"name", &H::name},
    {"vendor", &H::vendor},
    {"architecture", &H::architecture},
    {"compute_capability", &H::compute_capability},
    {"memory_type", &H::memory_type},
    {"host_link", &H::host_link},
    {"peer_link", &H::peer_link},
    {"form", &H::form},
    {"cooling", &H::cooling},
    {"connectors", &H::connectors},
    {"source", &H::source},
    {"confidence", &H::confidence},
    {"notes", &H::notes},
};

constexpr HardwareNumber kNumbers[] = {
    {"year", &H::year},
    {"memory_gb", &H::memory_gb},
    {"memory_gb_s", &H::memory_gb_s},
    {"l2_mb", &H::l2_mb},
    {"fp64_tflops", &H::fp64_tflops},
    {"fp32_tflops", &H::fp32_tflops},
    {"fp32_matrix_tflops", &H::fp32_matrix_tflops},
    {"tf32_tflops", &H::tf32_tflops},
    {"fp16_tflops", &H::fp16_tflops},
    {"bf16_tflops", &H::bf16_tflops},
    {"fp8_tflops", &H::fp8_tflops},
    {"int8_tops", &H::int8_tops},
    {"units", &H::units},
    {"cores", &H::cores},
    {"clock_mhz", &H::clock_mhz},
    {"tensor_clock_mhz", &H::tensor_clock_mhz},
    {"flop_per_core_cycle", &H::flop_per_core_cycle},
    {"fp16_flop_per_unit_cycle", &H::fp16_flop_per_unit_cycle},
    {"tensor_cores", &H::tensor_cores},
    {"tensor_core_generation", &H::tensor_core_generation},
    {"slots", &H::slots},
    {"width_mm", &H::width_mm},
    {"supply_w", &H::supply_w},
    {"power_w", &H::power_w},
    {"host_link_gb_s", &H::host_link_gb_s},
    {"peer_link_gb_s", &H::peer_link_gb_s},
    {"mig_slices", &H::mig_slices},
    {"dies", &H::dies},
};

constexpr HardwareFlag kFlags[] = {
    {"ecc", &H::ecc},
    {"nvlink_bridge", &H::nvlink_bridge},
};

// A text of TOML: backslashes, quotes and control characters escaped.
std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

bool IsOfCards(std::string_view key) {
  constexpr std::string_view kOfCards[] = {"cooling",  "connectors", "slots",
                                           "width_mm", "supply_w",   "nvlink_bridge"};
  return std::find(std::begin(kOfCards), std::end(kOfCards), key) != std::end(kOfCards);
}

// Most devices have none of these.
bool IsRare(std::string_view key) {
  return key == "notes" || key == "fp32_matrix_tflops" || key == "dies";
}

bool IsBareKey(const std::string& text) {
  constexpr std::string_view kBare =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !text.empty() && text.find_first_not_of(kBare) == std::string::npos;
}

}  // namespace

std::span<const HardwareText> HardwareTexts() { return kTexts; }
std::span<const HardwareNumber> HardwareNumbers() { return kNumbers; }
std::span<const HardwareFlag> HardwareFlags() { return kFlags; }

Hardware::Number Hardware::ComputedFp32Tflops() const {
  if (!cores || !flop_per_core_cycle || !clock_mhz) return std::nullopt;
  return *cores * *flop_per_core_cycle * *clock_mhz * 1e-6;
}

Hardware::Number Hardware::ComputedFp16Tflops() const {
  const Number clock = tensor_clock_mhz ? tensor_clock_mhz : clock_mhz;
  if (!units || !fp16_flop_per_unit_cycle || !clock) return std::nullopt;
  return *units * *fp16_flop_per_unit_cycle * *clock * 1e-6;
}

const char* FastestPrecision(const Hardware& hardware) {
  if (hardware.bf16_tflops) return "bf16";
  return hardware.fp16_tflops ? "f16" : "f32";
}

bool IsCpu(const Hardware& hardware) {
  return hardware.architecture.starts_with("x86-64") || hardware.architecture.starts_with("Arm");
}

double ComputeCapability(const Hardware& hardware) {
  double value = 0;
  const std::string& text = hardware.compute_capability;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string> UnknownKeys(const Hardware& hardware) {
  std::vector<std::string> unknown;
  const auto add = [&](const char* key, bool is_known) {
    const bool asked = hardware.form == "card" || !IsOfCards(key);
    if (!is_known && asked && !IsRare(key)) unknown.emplace_back(key);
  };
  for (const auto& [key, member] : kTexts) add(key, !(hardware.*member).empty());
  for (const auto& [key, member] : kNumbers) add(key, (hardware.*member).has_value());
  for (const auto& [key, member] : kFlags) add(key, (hardware.*member).has_value());
  return unknown;
}

std::string HardwareToml(const Hardware& hardware) {
  const std::string& id = hardware.id;
  std::string out = fmt::format("[{}]\n", IsBareKey(id) ? id : Quoted(id));
  for (const auto& [key, member] : kTexts) {
    const std::string& text = hardware.*member;
    if (!text.empty()) out += fmt::format("{} = {}\n", key, Quoted(text));
  }
  for (const auto& [key, member] : kNumbers) {
    if (hardware.*member) out += fmt::format("{} = {}\n", key, *(hardware.*member));
  }
  for (const auto& [key, member] : kFlags) {
    if (hardware.*member) out += fmt::format("{} = {}\n", key, *(hardware.*member));
  }
  return out;
}

}  // namespace ridge
