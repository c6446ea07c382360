#include "ridge/plan/hardware/software.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ridge/graph/suggest.h"
#include "ridge/plan/hardware/embedded_list.h"
#include "ridge/plan/hardware/software_catalog.h"

namespace ridge {
namespace {

double NumberAt(const toml::table& row, const char* key) {
  return row[key].value<double>().value_or(1);
}

Software SoftwareOf(const toml::table& row) {
  return {.id = TextAt(row, "id"),
          .name = TextAt(row, "name"),
          .precision = TextAt(row, "precision"),
          .eager = row["eager"].value<bool>().value_or(false),
          .channels_first = row["channels_first"].value<bool>().value_or(false),
          .scale = NumberAt(row, "scale"),
          .low = NumberAt(row, "low"),
          .high = NumberAt(row, "high"),
          .evidence = TextAt(row, "evidence"),
          .memory_scale = row["memory_scale"].value<double>().value_or(0),
          .memory_low = NumberAt(row, "memory_low"),
          .memory_high = NumberAt(row, "memory_high"),
          .memory_evidence = TextAt(row, "memory_evidence")};
}

// In the order of the catalog, each once.
std::vector<std::string> Ids() {
  std::vector<std::string> ids;
  for (const Software& software : SoftwareCatalog()) {
    if (std::find(ids.begin(), ids.end(), software.id) == ids.end()) ids.push_back(software.id);
  }
  return ids;
}

}  // namespace

const std::vector<Software>& SoftwareCatalog() {
  static const std::vector<Software> all =
      ReadEmbeddedList(kSoftwareCatalog, "software.toml", "software", SoftwareOf);
  return all;
}

Result<Software> FindSoftware(const std::string& id, const std::string& precision) {
  // What is measured of ridge in 16 bits holds for plans in 8.
  const bool own_fp8 = id == kOwnSoftware && precision == "fp8";
  const std::string products = precision == "bf16" || own_fp8 ? "f16" : precision;
  std::vector<std::string> precisions;
  for (const Software& software : SoftwareCatalog()) {
    if (software.id != id) continue;
    if (software.precision == products) return software;
    precisions.push_back(software.precision);
  }
  if (precisions.empty())
    return InvalidArgument(fmt::format("nothing is known of '{}'{} hint: known are {}", id,
                                       DidYouMean(id, Ids()).empty() ? "." : DidYouMean(id, Ids()),
                                       fmt::join(Ids(), ", ")));
  return InvalidArgument(
      fmt::format("no published trainings of {} in {} are known, only in {}. hint: --precision {}",
                  id, precision, fmt::join(precisions, ", "), precisions.front()));
}

}  // namespace ridge
