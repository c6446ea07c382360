// DataKind: what stands before the colon of a data spec.  The table is the one place that lists
// them.
#pragma once
#include <span>
#include <string>

#include "ridge/data/source.h"

namespace ridge {

struct DataKind {
  const char* name;      // "images"
  const char* argument;  // what stands behind the colon, in messages: "DIR"; null: nothing does

  // `spec` is the whole text, for messages; `argument` stands behind the colon and is not empty.
  Result<DataSplits> (*open)(const std::string& spec, const std::string& argument,
                             const DataOptions& options);

  // What is known before the model, of data that adapt to its inputs; null: data do not, and open
  // needs no model.
  Result<DataFacts> (*facts)(const std::string& spec, const std::string& argument,
                             const DataOptions& options);

  std::string Form() const;  // "images:DIR"
};

std::span<const DataKind> DataKinds();

}  // namespace ridge
