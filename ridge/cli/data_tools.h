// What `ridge data` does beside the survey: contact sheets and timings.
#pragma once
#include <optional>
#include <string>

#include "ridge/data/source.h"
#include "ridge/report/terminal.h"

namespace ridge::cli {

struct DataTools {
  std::optional<std::string> sheet;  // FILE.png or FILE.html
  bool bench = false;
  std::optional<std::string> augment;
  std::optional<int64_t> workers;  // the cores that may be used
  std::optional<int64_t> seed;     // 0

  bool list_caches = false, clean_caches = false;

  bool caches() const { return list_caches || clean_caches; }
  bool any() const { return sheet.has_value() || bench; }
};

// Refuses what needs no data to be refused.
Status CheckTools(const DataTools& tools);

// Refuses them beside data and beside each other.
Status CheckCaches(const DataTools& tools, const std::optional<std::string>& spec);

// Of `--cache disk`: lists them, or removes them.  REQUIRES: one of both is asked for.
Status RunCaches(const DataTools& tools, bool json, const Terminal& terminal);

// On the training set, augmented as the tools say.  REQUIRES: tools.any(), CheckTools.
Status RunTools(const DataTools& tools, const std::string& spec, const DataSplits& splits,
                bool json, const Terminal& terminal);

}  // namespace ridge::cli
