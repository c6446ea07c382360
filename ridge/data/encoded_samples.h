// EncodedSamples: what a source decodes its samples from, for those who keep decoded ones.
#pragma once
#include <vector>

#include "ridge/core/status.h"
#include "ridge/data/content_split.h"

namespace ridge {

class EncodedSamples {
 public:
  virtual ~EncodedSamples() = default;

  // Adds the encoded bytes of a sample and its label; `buffer` may grow.  Thread-safe.  Fails as
  // reading the bytes does, and with kUnsupported where the samples are not encoded.
  virtual Status AddContent(int64_t index, std::vector<char>& buffer, ContentHash& hash) const = 0;
};

}  // namespace ridge
