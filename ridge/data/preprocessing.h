// Preprocessing: what became of raw data on the way to a model's inputs.
//
// A training keeps it in its run folder, so that an evaluation on other data does the same:
// the columns of a table, its categories and statistics, the names of the classes, the size of
// pictures, the frames of clips, the form of sounds, the number of points.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ridge/data/image/picture.h"
#include "ridge/data/points/point_target.h"
#include "ridge/data/sound/sound_target.h"
#include "ridge/data/video_target.h"

namespace ridge {

enum class ColumnKind {
  kNumber,    // one feature: (x - mean) / std
  kBoolean,   // the same of 0 and 1
  kCategory,  // a feature for each value: 1 where it is that, else 0
};

struct TableColumn {
  std::string name;
  ColumnKind kind = ColumnKind::kNumber;
  double mean = 0, std = 1;         // of the training part, which a category does not have
  std::vector<std::string> values;  // of a category, by bytes
  // The training table lacks cells here: one more feature is 1 where the cell is missing, else 0.
  bool missing = false;

  int64_t features() const {
    const bool category = kind == ColumnKind::kCategory;
    return (category ? static_cast<int64_t>(values.size()) : 1) + (missing ? 1 : 0);
  }
  bool operator==(const TableColumn&) const = default;
};

enum class LabelKind { kClass, kInteger, kNumber };  // i64 by name, i64 as it is, f32

struct TableLabel {
  std::string name;
  LabelKind kind = LabelKind::kInteger;
  bool operator==(const TableLabel&) const = default;
};

struct TablePreprocessing {
  bool standardize = true;           // else numbers stay as they are; a missing one is the mean
  std::vector<TableColumn> columns;  // in the order of their features
  std::optional<TableLabel> label;

  int64_t features() const {
    int64_t count = 0;
    for (const TableColumn& column : columns) count += column.features();
    return count;
  }
  bool operator==(const TablePreprocessing&) const = default;
};

// How u8 pixels become floats: (x / 255 - mean) / std, in f32 as torchvision's Normalize; without
// means x / 255.
struct PixelNormalization {
  std::vector<double> mean, std;  // one for all channels, or one a channel; as many of each

  bool empty() const { return mean.empty(); }
  bool operator==(const PixelNormalization&) const = default;
};

struct PicturePreprocessing {
  PictureTarget target;
  PixelNormalization normalization;
  bool operator==(const PicturePreprocessing&) const = default;
};

// Which class the ids of masks are: id 255 is none (kIgnoredLabel), but 1 of masks of 0 and 255.
struct MaskPreprocessing {
  int64_t classes = 0;
  bool binary = false;  // 255 is class 1
  bool operator==(const MaskPreprocessing&) const = default;
};
inline constexpr int64_t kIgnoredLabel = -100;  // PyTorch's ignore_index
inline constexpr int64_t kMostMaskClasses = 255;

struct TextPreprocessing {
  std::string kind;                // of tokenizer: "wordpiece", "bytes", ...
  std::vector<std::string> files;  // paths of the tokenizer's, all of one folder; none: bytes
  bool operator==(const TextPreprocessing&) const = default;
};

// The characters that transcripts are spelled with: spelling.h.
struct SpellingPreprocessing {
  bool lower = false;                // texts are in lower case
  std::vector<std::string> letters;  // one character each, by code point
  bool operator==(const SpellingPreprocessing&) const = default;
};

struct Preprocessing {
  std::vector<std::string> classes;  // class i is called classes[i]; empty: they have no names
  std::optional<TablePreprocessing> table;
  std::optional<PicturePreprocessing> pictures;
  std::optional<MaskPreprocessing> masks;  // of the pictures
  std::optional<VideoTarget> clips;        // where samples are clips
  std::optional<TextPreprocessing> text;
  std::optional<SoundTarget> sounds;
  std::optional<SpellingPreprocessing> spelling;  // of what is said in them
  std::optional<PointTarget> points;
  bool operator==(const Preprocessing&) const = default;
};

}  // namespace ridge
