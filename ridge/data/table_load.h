// LoadTable: the rows of a table as samples in memory, whatever file they are from.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/data/csv_options.h"
#include "ridge/data/csv_table.h"
#include "ridge/data/memory_source.h"
#include "ridge/data/source.h"

namespace ridge {

struct LoadedTable {
  std::vector<NamedTensor> fields;  // features, label; what there is of them
  std::vector<uint32_t> lines;      // of each sample in its table
  int64_t held_out = 0;             // samples, behind the others
  int64_t features = 0;
  std::shared_ptr<const Preprocessing> preprocessing;
  std::vector<std::string> notes;
};

// Surveys the table, or does as options.preprocessing says.  Fails as OpenCsv does.
Result<LoadedTable> LoadTable(const std::string& name, const CsvTable& table, const CsvOptions& csv,
                              const DataOptions& options);

// What a built-in model must know of a table.
std::vector<ModelSize> SizesOfTable(int64_t features, const Source& source,
                                    const Preprocessing& preprocessing);

}  // namespace ridge
