// Source: a data set as numbered samples, each with the same named fields.  OpenData finds one.
//
// A source is random access and does not change after opening, so every order of the samples is a
// function from a position to sample numbers (shuffle.h), and resuming needs no skipping.
// Reading is thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ridge/core/shape.h"
#include "ridge/core/stage_times.h"
#include "ridge/core/status.h"
#include "ridge/data/bad_records.h"
#include "ridge/data/preprocessing.h"

namespace ridge {

struct Field {
  std::string name;     // "image"
  TensorType type;      // of one sample: u8[28,28]
  int64_t classes = 0;  // largest value + 1 of integers that are labels; 0 when that says nothing
  PixelNormalization normalization = {};  // of u8 pixels on their way to floats
  bool operator==(const Field&) const = default;
};

// Which sample is read, and in which epoch: random transforms are functions of the two.
struct SampleAt {
  int64_t index = 0;
  int64_t epoch = 0;
  // Of a field of pictures: the box of the original that is read; of sounds: the part; of point
  // clouds: which points (Source::reads_crops).
  const CropDraw* crop = nullptr;
  StageSeconds* stages = nullptr;  // where reading adds its times; null: it takes none

  SampleAt WithIndex(int64_t other) const { return {other, epoch, crop, stages}; }
};

class Source {
 public:
  virtual ~Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string& name() const { return name_; }  // for messages: "idx:/data/mnist"
  const std::vector<Field>& fields() const { return fields_; }
  int64_t size() const { return size_; }    // samples, at least 1
  int FindField(const std::string&) const;  // -1 when there is none

  // Writes one field of one sample, fields()[field].type.bytes() bytes.  Several threads may read
  // at once, each with a scratch of its own of scratch_bytes().
  // REQUIRES: 0 <= at.index < size(), 0 <= field < fields().size().
  virtual Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const = 0;
  virtual int64_t scratch_bytes() const { return 0; }
  // What a library allocates and frees within one Read, at most.
  virtual int64_t heap_bytes() const { return 0; }

  // The same with a scratch of its own, in the first epoch: for readers of few samples.
  Status ReadOne(int64_t index, int field, void* out) const;

  // Reading a sample takes so long (it decodes) that threads share the samples of a batch.
  virtual bool reads_slowly() const { return false; }

  // Read does SampleAt::crop: it decodes pictures, and cuts them before they are resized, or
  // sounds, or it chooses points.
  virtual bool reads_crops() const { return false; }

  // An index is another sample in each epoch.
  virtual bool draws_by_epoch() const { return false; }

  // The same bytes in place in memory (at any alignment), or null when they are not in memory.
  virtual const void* View(int64_t index, int field) const;

  // Where a sample comes from, for people: "cats/7.png", "iris.csv:12", "idx:/data/mnist[7]".
  virtual std::string Origin(int64_t index) const;
  // The same where samples are drawn, and others in each epoch.
  virtual std::string OriginAt(SampleAt at) const { return Origin(at.index); }

  // Host memory that holds the samples as long as the source lives: exact.
  virtual int64_t resident_bytes() const = 0;

  // The source that owns that memory: views on the same data (parts, a split) name the same one.
  virtual const Source* storage() const { return this; }

 protected:
  Source(std::string name, std::vector<Field> fields, int64_t size);

 private:
  std::string name_;
  std::vector<Field> fields_;
  int64_t size_;
};

// Shared, because the two halves of a split look into one storage.
using SourcePtr = std::shared_ptr<const Source>;

// Host memory of several sources together; what they share counts once.  Null ones are skipped.
int64_t ResidentBytes(const std::vector<SourcePtr>& sources);

// A parameter of built-in models that the data determine: {"classes", 3}.
struct ModelSize {
  std::string name;
  int64_t value = 0;
  bool operator==(const ModelSize&) const = default;
};

struct DataSplits {
  SourcePtr train;
  // The data's own, or DataOptions::hold_out of the training samples if the kind of data does it;
  // else null.
  SourcePtr validation;
  SourcePtr test;         // null when the data has none
  bool held_out = false;  // the validation part is of the training samples
  std::shared_ptr<const Preprocessing> preprocessing;  // null: samples are as the files have them
  std::vector<ModelSize> sizes;
  BadRecordsPtr bad_records;       // DataOptions::bad_records
  std::vector<std::string> notes;  // what was read otherwise than it could be; a sentence each

  int64_t held_bytes = 0;  // what OpenData has allocated and kept, measured

  int64_t resident_bytes() const { return ResidentBytes({train, validation, test}); }
};

struct DataOptions {
  // The fraction of the training samples to hold out for validation; 0: none.  A table does it by
  // a hash of each row (content_split.h), others leave it to SplitValidation.
  double hold_out = 0;
  std::shared_ptr<const Preprocessing> preprocessing;  // that of other data, to be done here too
  bool plain_tables = false;  // numbers of tables as they are: for runs that keep no preprocessing

  // Where samples go that cannot be opened; null, or one that does not skip: opening fails.
  BadRecordsPtr bad_records;

  std::vector<Field> model_inputs;  // what `synthetic` makes, and what `images` are sized for
  int64_t synthetic_samples = 4096;
  uint64_t seed = 0;  // of the synthetic values
  std::string fashion_mnist_folder = "/usr/share/datasets/fashion-mnist";
};

// Opens data of one of the kinds of kinds.h, such as `images:DIR` or `csv:FILE`, and loads
// it; the memory needed while loading is resident_bytes() plus less than 1 MiB of buffers.  A
// folder alone is `masks:DIR` when it holds images/ and masks/, else `images:DIR` when it holds
// pictures in folders, else `points:DIR` when it holds point clouds; a note tells.  Fails with
// kInvalidArgument for an unknown spec, kInvalidData for a missing or malformed file (the message
// names the file, what is and what should be), kOutOfMemory when it does not fit.
Result<DataSplits> OpenData(const std::string& spec, const DataOptions& options = {});

// What is known before the model of data that adapt to its inputs (`synthetic`, `images`, `audio`,
// `points`).
struct DataFacts {
  std::vector<Field> fields;
  std::vector<ModelSize> sizes;
};

// Nothing for other data, which OpenData opens without a model.  Fails as OpenData does.
Result<std::optional<DataFacts>> FactsBeforeModel(const std::string& spec,
                                                  const DataOptions& options = {});

struct ValidationSplit {
  SourcePtr train;
  SourcePtr validation;
};

// Holds out round(fraction * size) samples, at least one, chosen by `seed` alone.  No copy is made.
// Fails with kInvalidArgument when the fraction is not in (0, 1) or leaves nothing to train on.
Result<ValidationSplit> SplitValidation(const SourcePtr& source, double fraction, uint64_t seed);

// The first or last `count` samples.  Fails with kInvalidArgument unless 1 <= count <= size.
Result<SourcePtr> TakeFirst(const SourcePtr& source, int64_t count);
Result<SourcePtr> TakeLast(const SourcePtr& source, int64_t count);

}  // namespace ridge
