// ExampleSchema: which features of tf.train.Examples become fields, and of which types.
//
// Found from the first records, or said by the user.  A feature is a list of integers, of floats or
// of byte strings; it becomes a field when all records have as many values of it.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "ridge/data/container/container_options.h"
#include "ridge/data/container/example.h"
#include "ridge/data/container/sample_sets.h"

namespace ridge {

struct ExampleField {
  std::string feature;  // its name in the records: "image/encoded"
  Field field;          // a picture's type is that of the target
  FeatureKind kind = FeatureKind::kNone;
  bool picture = false;  // one byte string: an encoded picture
};

struct ExampleSchema {
  std::vector<ExampleField> fields;  // in the order of the features' names, or as the user has them
  std::vector<std::string> notes;

  const ExampleField* picture() const;  // null: there is none
};

// Looks at records, and then says what they have in common.
class SchemaFinder {
 public:
  Status Look(RecordView& record);
  // Of the records seen.  With options.schema its fields, else all that have one type.  Fails with
  // kInvalidArgument when the options do not fit the records.
  Result<ExampleSchema> Find(const std::string& spec, const ContainerOptions& options) const;

 private:
  struct Seen {
    FeatureKind kind = FeatureKind::kNone;
    int64_t records = 0;
    IntegerRange counts, bytes, values;  // of lists, of byte strings, of single integers
    bool pictures = true, texts = true;  // all of the byte strings
    bool same_kind = true;
    bool is_constant() const { return values.least == values.most; }
  };

  Status Note(RecordView& record, const Feature& feature, Seen& seen) const;
  Status NoteBytes(RecordView& record, const RecordPart& value, Seen& seen) const;
  bool IsRegular(const Seen& seen) const;
  Dims RawDims(const std::string& feature, int64_t bytes) const;
  std::vector<ExampleField> Infer(std::vector<std::string>& left_out) const;
  Result<std::vector<ExampleField>> ParseSchema(const std::string& spec,
                                                const std::string& text) const;
  Status SetKind(const std::string& spec, ExampleField& field) const;

  std::map<std::string, Seen, std::less<>> seen_;
  int64_t records_ = 0;
};

// Checks a record against the schema; bare reasons.  `found` has one a field.
Status MatchExample(const ExampleSchema& schema, RecordView& record, std::vector<Feature>& found);

}  // namespace ridge
