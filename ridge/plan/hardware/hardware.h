// Hardware: what is published of a device that may not be here, and the catalog of such devices.
//
// A catalog is a TOML file with one table a device.  The program carries one (devices.toml), with
// the source of each entry; a user's own file has the same form.  What a file leaves out is not
// known, and stays null.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/status.h"

namespace ridge {

// Members are named as the keys of the file, units included.  Rates are dense peaks; 16-bit
// products have f32 sums; a link's rate is that of one direction.
struct Hardware {
  using Number = std::optional<double>;

  std::string id;  // "h100-sxm": the table's name
  std::string name, vendor, architecture, compute_capability;
  std::string memory_type, host_link, peer_link;  // peer_link "none": over the host
  std::string form;                               // card, module or soc
  std::string cooling;                            // of a card: passive or fan
  std::string connectors;
  std::string source, confidence, notes;  // confidence: datasheet, secondary or recalled

  Number year;
  Number memory_gb, memory_gb_s, l2_mb;
  // fp32_matrix: of matrix units with f32 operands.
  Number fp64_tflops, fp32_tflops, fp32_matrix_tflops, tf32_tflops, fp16_tflops, bf16_tflops,
      fp8_tflops, int8_tops;
  Number units;  // streaming multiprocessors, compute units, cores of a CPU
  Number cores, clock_mhz, tensor_clock_mhz, flop_per_core_cycle, fp16_flop_per_unit_cycle;
  Number tensor_cores, tensor_core_generation;
  Number slots, width_mm, supply_w;  // of a card: the supply that its board asks for
  Number power_w;
  Number host_link_gb_s, peer_link_gb_s;
  Number mig_slices;
  Number dies;  // that programs see as devices of their own; null: one

  std::optional<bool> ecc, nvlink_bridge;

  // cores * flop_per_core_cycle * clock, and units * fp16_flop_per_unit_cycle * tensor_clock (else
  // clock); null when a factor is not known.
  Number ComputedFp32Tflops() const;
  Number ComputedFp16Tflops() const;
};

// `--precision` of the type that the device multiplies fastest: "bf16", else "f16", else "f32".
const char* FastestPrecision(const Hardware& hardware);

bool IsCpu(const Hardware& hardware);

// 9 for an H100; 0: no GPU of NVIDIA's.
double ComputeCapability(const Hardware& hardware);

// The keys of a device's table, in the order in which they are shown.
struct HardwareText {
  const char* key;
  std::string Hardware::*member;
};
struct HardwareNumber {
  const char* key;
  Hardware::Number Hardware::*member;
};
struct HardwareFlag {
  const char* key;
  std::optional<bool> Hardware::*member;
};
std::span<const HardwareText> HardwareTexts();
std::span<const HardwareNumber> HardwareNumbers();
std::span<const HardwareFlag> HardwareFlags();

// The keys that have no value for this device, though one of its form has one.
std::vector<std::string> UnknownKeys(const Hardware& hardware);

// The program's own catalog, in the order of its file.
const std::vector<Hardware>& HardwareCatalog();

// The devices of a TOML text.  `like = "h100-sxm"` in a table takes what the table leaves out from
// that device of the program's catalog.  Fails with kInvalidData for text that is no TOML, unknown
// keys, values of another type, and a file without a device; the message has file and line.
Result<std::vector<Hardware>> ParseHardware(std::string_view text, const std::string& path);

// A device of the program's catalog by its id, or of a file: "my.toml", or "my.toml:ID" when it
// has several.  Fails with kInvalidArgument for an unknown id, kInvalidData as ParseHardware.
Result<Hardware> FindHardware(const std::string& text);

// The device as a table of a catalog file.
std::string HardwareToml(const Hardware& hardware);

}  // namespace ridge
