// TextReader: records one by one -> tokenized text.
//
// The samples of a classifier are its records; those of a language model are blocks of all records
// joined, the tokenizer's end token between them, or with packing pieces of its length of each
// record.
#pragma once
#include <string>
#include <vector>

#include "ridge/data/container/sample_sets.h"
#include "ridge/data/text_records.h"
#include "ridge/data/text_setup.h"

namespace ridge {

class TextReader {
 public:
  // REQUIRES: both outlive the reader.
  TextReader(const Tokenizer& tokenizer, const TextLayout& layout)
      : tokenizer_(tokenizer), layout_(layout) {}

  // The records that follow are of this file.
  void BeginFile(const std::string& path) { read_.files.push_back(path); }

  // REQUIRES: a file is begun.
  void Add(const TextRecord& record, int32_t label);

  int64_t records() const { return static_cast<int64_t>(read_.samples.size()); }

  // Of all records, in their order: instead of those given with them.
  void SetLabels(const std::vector<int64_t>& labels);

  // Cuts the blocks of a language model.  Fails with kInvalidData when there is no sample.
  Status Finish(const std::string& name);

  struct Texts {
    TokenizedText all;
    int64_t held_out = 0;  // samples, behind the others
  };
  // Holds out `fraction` of the samples by what they hold; 0: none.
  Result<Texts> Take(const std::string& name, double fraction);

 private:
  TextSample RecordAt(int64_t begin) const;
  Status CutTexts(const std::string& name);
  uint64_t HashOfBlock(int64_t begin) const;
  Result<int64_t> HoldOut(const std::string& name, double fraction);

  const Tokenizer& tokenizer_;
  const TextLayout& layout_;
  TokenizedText read_;            // of a language model, samples are records until Finish
  std::vector<uint64_t> hashes_;  // by sample
};

// Ends the reading of a set.  Fails as Finish and Take do.
Result<SampleSet> FinishTexts(const std::string& name, TextReader& reader, const TextLayout& layout,
                              int64_t vocab, int64_t classes, double hold_out);

}  // namespace ridge
