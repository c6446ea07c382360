// RowEncoder: a row of a table -> the values of its features and its label, by a preprocessing.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ridge/data/csv_table.h"
#include "ridge/data/preprocessing.h"

namespace ridge {

class RowEncoder {
 public:
  // Finds the columns by name; others of the table are left out.
  // Fails with kInvalidData when the table lacks one; the message names it.
  // REQUIRES: preprocessing->table; the table outlives the encoder.
  static Result<RowEncoder> Create(const CsvTable& table,
                                   std::shared_ptr<const Preprocessing> preprocessing);

  int64_t features() const { return features_; }
  const TableLabel* label() const { return label_column_ < 0 ? nullptr : &*rules().label; }

  // Whether the row has a label, or none is asked for.
  bool IsLabeled(const std::vector<std::string>& cells) const;

  // Fails with kInvalidData, with the line and the column: a number, an integer or a class is
  // expected.  `features` has room for features() values.
  Status EncodeFeatures(const std::vector<std::string>& cells, int64_t line, float* features);
  Result<double> EncodeLabel(const std::vector<std::string>& cells, int64_t line) const;

  // What was encoded and the training data did not have; a sentence each.
  std::vector<std::string> Notes() const;

 private:
  struct Unknown {  // by column
    int64_t values = 0, missing = 0;
    std::string first;
  };

  RowEncoder(const CsvTable& table, std::shared_ptr<const Preprocessing> preprocessing)
      : table_(&table), preprocessing_(std::move(preprocessing)) {}
  const TablePreprocessing& rules() const { return *preprocessing_->table; }
  Result<double> NumberOf(const std::string& cell, int64_t line, int64_t column) const;
  Status EncodeNumber(size_t index, const std::string& cell, int64_t line, float* feature) const;
  void EncodeCategory(size_t index, const std::string& cell, float* features);

  const CsvTable* table_;
  std::shared_ptr<const Preprocessing> preprocessing_;
  std::vector<int64_t> columns_;  // of the table, one a TableColumn
  int64_t label_column_ = -1;
  int64_t features_ = 0;
  std::vector<Unknown> unknown_;
};

}  // namespace ridge
