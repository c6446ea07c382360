// How programs that could train a model on a device compare.  Every cell says whether it is known,
// estimated or not known, and who says so.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/report/terminal.h"

namespace ridge {

enum class Evidence { kKnown, kEstimated, kNotKnown };
const char* EvidenceName(Evidence evidence);  // "known", "estimated", "not known"

struct FrameworkCell {
  std::string text;                  // "" where nothing is known
  std::optional<double> value = {};  // bytes, seconds, a count: what the text was made of
  Evidence evidence = Evidence::kNotKnown;
  std::string source;  // who says so, by what it is estimated, or why nothing is known
};

struct FrameworkRow {
  std::string program;  // "PyTorch"
  FrameworkCell least, newest, driver, python;
  FrameworkCell memory, seconds, host_share, download, packages;
};

struct DeviceFrameworks {
  std::string device, precision;
  std::vector<FrameworkRow> rows;
};

struct FrameworksTable {
  std::string title;    // "resnet50, batch 256"
  bool is_step = true;  // seconds are of a step; else of the training
  std::vector<DeviceFrameworks> devices;
  bool all = false;  // with the sources of all cells
};

// The cells of a row: keys of the JSON, titles of the columns.
struct FrameworkColumn {
  const char* key;
  const char* title;  // of `seconds` see is_step
  FrameworkCell FrameworkRow::*cell;
};
const std::vector<FrameworkColumn>& FrameworkColumns();

// A table a device; "~" before what is estimated, "?" for what is not known.
std::string FrameworksReport(const FrameworksTable& table, const Terminal& terminal);

// One object: of each cell its text, value, evidence and source.
std::string FrameworksJson(const FrameworksTable& table);

std::string FrameworksMarkdown(const FrameworksTable& table);

}  // namespace ridge
