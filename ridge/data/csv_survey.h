// SurveyCsv: what the columns of a table are, found by reading all of it once.
//
//   numbers, or true/false/yes/no   one feature, standardized by the training part
//   words                           a category: one feature a value
//   row labels, dates, free text    left out, with a note
//   a few words among numbers       refused: a bad cell, or a mark for a missing one
//
// Cells without a value (IsMissing) are the column's mean, or no category, and one more feature
// tells of them.  Rows without a label are left out.
#pragma once
#include <string>
#include <vector>

#include "ridge/data/content_split.h"
#include "ridge/data/csv_options.h"
#include "ridge/data/csv_table.h"
#include "ridge/data/preprocessing.h"

namespace ridge {

struct CsvSurvey {
  Preprocessing preprocessing;
  ContentSplit split;              // counted
  std::vector<std::string> notes;  // what was guessed or left out; a sentence each
};

// `split` is not counted yet.  With `plain`, numbers stay as they are and a column of numbers is
// never taken for row labels, as before tables were preprocessed.
// Fails with kInvalidData (the message has the line and the column), and with kInvalidArgument for
// an option that names a column that is not there.  `name` is that of the data, for notes.
Result<CsvSurvey> SurveyCsv(const std::string& name, const CsvTable& table,
                            const CsvOptions& options, const ContentSplit& split, bool plain);

// Fails when the number is not finite, or too large for f32.
Status CheckNumber(const CsvTable& table, int64_t line, int64_t column, const std::string& cell,
                   double value);

// Of the cells of all columns but row labels and dropped ones.
class RowHasher {
 public:
  RowHasher(const CsvTable& table, const CsvOptions& options);
  uint64_t operator()(const std::vector<std::string>& cells) const;

 private:
  std::vector<size_t> columns_;
};

}  // namespace ridge
