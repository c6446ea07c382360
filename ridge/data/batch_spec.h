// BatchSpec: the inputs a model wants, and which field of a source each comes from.
#pragma once
#include <string>
#include <vector>

#include "ridge/data/convert.h"
#include "ridge/data/source.h"

namespace ridge {

struct InputSpec {
  std::string name;        // the model's: "image"
  TensorType type;         // of one sample: f32[1,28,28]
  std::string field = "";  // the source's, when the user says it; else it is found
  bool whole = false;      // of a loader that fills a share of each batch: all rows of the batch
};

struct BatchSpec {
  std::vector<InputSpec> inputs;

  int64_t bytes(int64_t batch) const;  // one slot of all inputs
};

struct FieldMap {
  int field = 0;
  Conversion conversion;
};

// One entry per input.  A field is found by: the name given; the input's name; another name of its
// group (image images x input inputs data features input_features input_values pixel_values; label
// labels y target targets; input_ids tokens token_ids ids; attention_mask mask); its type, when
// just one field that is left can become this input and no other input that is left. Fails with
// kInvalidData; the message is a table of inputs against fields.
Result<std::vector<FieldMap>> MatchFields(const BatchSpec& spec, const Source& source);

// The field of this input's name, or of another name of its group; nullptr when there is none.
const Field* FindFieldByName(const std::string& input, const std::vector<Field>& fields);

}  // namespace ridge
