// SurveyData: what a data set holds before a model sees it.
//
// Labels are read of all samples; the rest of all of them, or of some evenly spaced ones where
// reading is slow.  A sample that cannot be read is a fact, not a failure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/image/header.h"
#include "ridge/data/source.h"
#include "ridge/data/text_packing.h"

namespace ridge {

struct SurveyOptions {
  bool all = false;             // read every sample, however long it takes
  int64_t slow_samples = 2000;  // else so many of a set whose reading is slow
  int threads = 1;
};

// Of the numbers of one field, over the samples that were read.
struct FieldSurvey {
  Field field;
  double least = 0, most = 0, mean = 0, deviation = 0;
  int64_t not_finite = 0;  // NaN and infinities; not in the numbers above
};

struct ClassCount {
  int64_t index = 0;
  std::string name;     // "cat", or its number
  int64_t samples = 0;  // of masks: that have a pixel of it
  int64_t pixels = 0;   // of masks
};

// A column of a table, in the unit of the file.
struct ColumnSurvey {
  TableColumn column;
  double least = 0, most = 0;
  int64_t missing = 0;
  std::vector<int64_t> counts;  // of a category: by value
};

struct BadSample {
  std::string origin, reason;
};

// What the files of pictures are, before they are resized.
struct PictureSurvey {
  std::vector<std::pair<std::string, int64_t>> formats;  // "JPEG", and how many
  std::vector<std::pair<int, int64_t>> channels;         // of the file
  ImageSize smallest, median, largest;                   // by pixels
  std::string smallest_file, largest_file;
};

// What the files of sounds are, before they are resampled and cut.
struct SoundSurvey {
  std::vector<std::pair<std::string, int64_t>> formats;  // "WAV", and how many
  std::vector<std::pair<int64_t, int64_t>> rates;        // samples a second, rising, and how many
  std::vector<std::pair<int, int64_t>> channels;         // likewise
  double shortest_s = 0, median_s = 0, longest_s = 0, total_s = 0;
  std::string shortest_file, longest_file;
};

// What the files of point clouds are, before points are chosen.
struct CloudSurvey {
  std::vector<std::pair<std::string, int64_t>> formats;  // "PLY", and how many
  int64_t fewest = 0, median = 0, most = 0;              // points
  std::string smallest_file, largest_file;
};

// What is said in sounds, as it is spelled.
struct TranscriptSurvey {
  int64_t shortest = 0, median = 0, longest = 0;         // letters of a text
  int64_t letters = 0, words = 0;                        // in all
  std::vector<std::pair<std::string, int64_t>> spelled;  // by letter, how often
  int64_t others = 0;                                    // letters that the table lacks
};

// How much of the rows of texts is padding; texts longer than a row count as their pieces.
struct TextSurvey {
  int64_t length = 0;  // tokens of a row
  bool is_packed = false;
  int64_t shortest = 0, median = 0, longest = 0;  // tokens
  PaddingShares shares;
};

struct SetSurvey {
  std::string name;  // "training", "validation", "test"
  int64_t samples = 0, read = 0;
  std::vector<FieldSurvey> fields;
  std::vector<ClassCount> classes;  // of an integer label, or of masks; empty otherwise
  bool has_masks = false;
  int64_t ignored_pixels = 0;  // of masks
  std::vector<ColumnSurvey> columns;
  std::optional<PictureSurvey> pictures;  // of those in files of their own
  std::optional<SoundSurvey> sounds;      // likewise
  std::optional<CloudSurvey> clouds;      // likewise
  std::optional<TranscriptSurvey> transcripts;
  std::optional<TextSurvey> texts;  // of tokenized ones
  std::vector<BadSample> bad;
};

// Two samples with equal contents, the label aside.
struct SamplePair {
  std::string a, b;
};

// Equal samples of two sets, or within one, among those that were read.
struct DuplicateSurvey {
  std::string in, of;             // "test", "training": the samples of `in` that `of` has too
  int64_t samples = 0;            // of `in`
  int64_t other_labels = 0;       // of them, whose label is another one there
  std::vector<SamplePair> first;  // at most kMostPairs
};
inline constexpr size_t kMostPairs = 5;

struct DataSurvey {
  std::vector<SetSurvey> sets;
  std::vector<DuplicateSurvey> duplicates;  // only those that there are

  bool whole() const;  // every sample was read
};

// Fails only where reading fails for another reason than the data.
Result<DataSurvey> SurveyData(const DataSplits& splits, const SurveyOptions& options);

}  // namespace ridge
