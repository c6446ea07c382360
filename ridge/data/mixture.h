// Mixtures: several data specs with weights, "csv:a.csv*3,csv:b.csv,label=y".
//
// An epoch has as many samples as all sources together, shared out by the weights: a source of
// twice the weight of another gives twice its samples, whatever their sizes (mixture_source.h).
// Sets for validation and test hold each sample of each source once.  What is kept of the first
// source (its statistics, classes, tokenizer, size of pictures) is done to the others.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/source.h"

namespace ridge {

struct MixtureSpec {
  struct Part {
    std::string spec;
    double weight = 1;
  };
  std::vector<Part> parts;  // at least two
};

// What stands behind a comma is a further part when `is_spec` says that it begins one; else it is
// an option or belongs to a name.  Commas in braces cut nothing.  Nullopt where there is one part.
std::optional<MixtureSpec> ParseMixture(const std::string& text,
                                        bool (*is_spec)(const std::string&));

// Fails as OpenData does, with kInvalidArgument for a weight that is no number above 0, and with
// kInvalidData for sources of other fields; the message names both.
Result<DataSplits> OpenMixture(const std::string& name, const MixtureSpec& mixture,
                               const DataOptions& options);

// FactsBeforeModel of a mixture: with the largest sizes of all.  Fails with kInvalidArgument where
// some sources adapt to the model and others do not.
Result<std::optional<DataFacts>> MixtureFacts(const std::string& name, const MixtureSpec& mixture,
                                              const DataOptions& options);

}  // namespace ridge
