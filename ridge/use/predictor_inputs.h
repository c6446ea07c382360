// OpenInputs: what a user names on the command line, as sources of samples without labels.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/source.h"
#include "ridge/use/signature.h"

namespace ridge {

// Samples that are read alike: pictures that follow each other, or one file of rows or arrays.
struct InputSet {
  SourcePtr source;
  std::vector<std::string> names;  // of the samples: "photos/a.jpg", "table.csv row 3"
  std::vector<std::string> notes;

  // Samples whose answers have a mean: the frames of a video, up to `end`.
  struct Part {
    std::string name;
    int64_t end = 0;
  };
  std::vector<Part> parts;

  // Samples that could not be read, and are zeros; written while the source is read.
  struct BadSamples {
    std::mutex mutex;
    std::map<int64_t, Status> why;
  };
  std::shared_ptr<BadSamples> bad;  // null: the first one is a failure of the source

  std::optional<Status> BadSample(int64_t index) const;
};

// A file that cannot be read, and why.
using BadInput = std::function<void(const std::string& name, const Status& why)>;

// An input is a picture, a folder of pictures, a table, arrays, or of a model of text a text or a
// file of them; kKinds in predictor_inputs.cc is
// the one place that lists them.  `model_inputs` are those of a sample.  With `on_bad` what
// is no picture is told to it and left out, and what turns out to be damaged is a BadSample; else
// they fail with kInvalidData.  Fails with
// kInvalidArgument for a file of no known kind.
Result<std::vector<InputSet>> OpenInputs(const std::vector<std::string>& inputs,
                                         const Signature& signature,
                                         const std::vector<Field>& model_inputs,
                                         const BadInput& on_bad = nullptr);

}  // namespace ridge
