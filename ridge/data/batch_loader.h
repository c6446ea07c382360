// BatchLoader: the end of the input pipeline, where batches lie ready in the plan's input slots.
//
//   source -> map to the inputs (-> cache)          what a sample is
//   sequence -> shuffle -> batch -> repeat          which samples, in which order
//   prefetch                                        into which slot, ahead of time
//
// The memory of the slots is the caller's (the plan's arena; two slots: one is computed on while
// the other is filled).  Workers fill; they allocate nothing after the first batches.  Where
// reading is slow a task is one sample, written into its row of the slot; else it is a batch.  The
// batches are a function of (source, spec, options) alone: with any number of workers the same
// bits.
//
// Threads: one consumer calls everything but Stop, which any thread may call.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ridge/core/slice_tree.h"
#include "ridge/core/tensor.h"
#include "ridge/data/batch_spec.h"
#include "ridge/data/length_classes.h"
#include "ridge/data/prefetch.h"
#include "ridge/data/repeat.h"
#include "ridge/data/stage.h"

namespace ridge {

struct LoaderOptions {
  int64_t batch = 32;
  bool shuffle = true;
  uint64_t seed = 0;
  // true: an epoch leaves out the samples that do not fill a batch.  false: the last batch is
  // padded with samples of zeros, and the weights of those are 0.
  bool drop_last = true;
  int64_t epochs = RepeatStage::kForever;
  Position start;
  int workers = 1;  // threads that fill, where reading is slow; 0: Next fills, for tests
  // What happens to samples that cannot be read; null: the loader fails.
  BadRecordsPtr bad_records;
  bool time_stages = false;   // also where reading is fast
  bool cache_mapped = false;  // keep all samples as the model wants them: memory for time
  // Each batch is of one length class, in its form; null: all batches have one form.  Of batches
  // by length those are left out that the samples of a class do not fill.
  LengthClassesPtr lengths;
  // Fills the rows of these slices of each batch only: others have the rest.  The batches are the
  // same, and so are their samples.  REQUIRES: share.slices divides each batch.
  std::optional<SliceShare> share = std::nullopt;
};

// Where one batch goes: for each input of the spec `batch` samples, side by side.
// The memory is aligned for the input's type and outlives the loader.
struct BatchSlot {
  std::vector<void*> inputs;
  // Called when a batch is in it, by the thread that put its last part there, before Next gives it
  // out; slots at once.
  std::function<void()> filled = [] {};
};

// What the batches of one kind are, and where they go.
struct BatchForm {
  BatchSpec spec;
  int64_t batch = 0;
  std::vector<BatchSlot> slots;  // as many in each form
};

// A batch that the loader has put into a slot.
struct LoadedBatch {
  int slot = -1;  // -1: end of the data; the other fields are undefined
  int form = 0;
  int64_t epoch = 0;
  int64_t batch_index = 0;    // within the epoch
  int64_t valid_samples = 0;  // of the rows that are filled: fewer than these in a padded batch
  bool last_of_epoch = false;
  int64_t dropped_samples = 0;  // what the epoch left out, in its last batch
  double wait_seconds = 0;      // how long Next had to wait
  Position after;               // the position when this batch is consumed

  bool end() const { return slot < 0; }
};

class BatchLoader {
 public:
  // An input named "ridge.weight" for which the source has no field of that name gets 1 for each
  // sample and 0 for padding.  Starts the thread. Fails with kInvalidArgument: batch < 1, or with
  // drop_last larger than the data; kInvalidData: inputs that the fields cannot fill, or a start
  // outside the data.
  static Result<std::unique_ptr<BatchLoader>> Create(SourcePtr source, const BatchSpec& spec,
                                                     const LoaderOptions& options,
                                                     std::vector<BatchSlot> slots);

  // The same with a form for each class of options.lengths, whose batches take the place of
  // options.batch.
  static Result<std::unique_ptr<BatchLoader>> Create(SourcePtr source, std::vector<BatchForm> forms,
                                                     const LoaderOptions& options);

  // Waits for the next batch.  Fails as reading does; an error comes after the batches before it.
  // REQUIRES: the caller holds fewer slots than there are.
  Result<LoadedBatch> Next();

  // The batch is consumed; its slot may be overwritten.  REQUIRES: it is the oldest one held.
  void Release(int slot);

  // After the last batch that was released: what a checkpoint saves.  Batches that were filled
  // ahead do not count.
  Position position() const { return position_; }

  // Ends the thread; nothing is written to the slots afterwards.  Next fails until Restart.
  void Stop();

  // Goes on at `position`, or starts anew there.  Slots that the caller holds are taken from it.
  Status Restart(const Position& position);

  // Where the time of the workers went since Create, where reading is slow; else zeros.  Any thread
  // may ask.
  StageSeconds stage_seconds() const { return totals_.Read(); }

  // Host memory of the pipeline beside slots and source, measured: what Create has allocated, and
  // what the threads had at a Stop.
  struct HeldBytes {
    int64_t own_bytes = 0;
    int64_t thread_bytes = 0;
  };
  HeldBytes held_bytes() const { return {created_bytes_, prefetch_->thread_bytes()}; }

  int64_t batches_per_epoch() const { return order_->size(); }
  int64_t dropped_per_epoch() const { return dropped_per_epoch_; }

  // Host memory of the pipeline beside the slots: the source's (and a cache's), which other loaders
  // on the same source share; and what the loader itself adds, its thread included.  With
  // options.lengths, `spec` is that of the whole length.
  struct PlannedBytes {
    int64_t source_bytes = 0;
    int64_t own_bytes = 0;
    int64_t thread_bytes = 0;  // those of own_bytes that end with Stop
  };
  static PlannedBytes Plan(const Source& source, const BatchSpec& spec,
                           const LoaderOptions& options);

 private:
  // A form, with the source whose fields are its inputs, less the weight.
  struct Rows {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t count() const { return end - begin; }
  };
  struct Form {
    BatchForm given;
    SourcePtr samples;
    int weight_input = -1;  // -1: none, or it comes from a field
    Rows rows = {};         // of a batch, that are filled
  };
  static Result<Form> MakeForm(const SourcePtr& source, BatchForm given, size_t number,
                               const LoaderOptions& options);
  BatchLoader(std::vector<Form> forms, const LoaderOptions& options);
  int64_t LargestScratch() const;
  std::unique_ptr<Stage> MakeOrder();
  Status CheckPosition(const Position& position) const;
  void KeepRows(int slot);
  bool IsWhole(size_t input, int slot) const { return FormOf(slot).given.spec.inputs[input].whole; }
  const std::vector<int64_t>& SamplesOf(size_t input, int slot) const;
  Rows RowsOf(size_t input, int slot, Rows task) const;
  const Source& samples() const { return *forms_.front().samples; }
  const Form& FormOf(int slot) const {
    return forms_[static_cast<size_t>(elements_[static_cast<size_t>(slot)].form)];
  }
  char* InputOf(int slot, size_t input) const {
    return static_cast<char*>(FormOf(slot).given.slots[static_cast<size_t>(slot)].inputs[input]);
  }
  bool times_stages() const { return options_.time_stages || samples().reads_slowly(); }
  int64_t RowsOfTask(const Form& form) const;
  Result<int> Begin(int slot);
  Status RunTask(int slot, int task, int worker);
  Status FillTimed(int slot, Rows rows, std::span<char> scratch);
  Status Fill(int slot, Rows rows, std::span<char> scratch, StageSeconds* stages);
  Status FillInput(size_t input, int slot, Rows rows, std::span<char> scratch,
                   StageSeconds* stages);
  Status ReadInto(size_t input, int slot, int64_t row, SampleAt at, std::span<char> scratch);
  Status FillSkipping(int slot, Rows rows, std::span<char> scratch, StageSeconds* stages);
  SampleAt At(int slot, int64_t sample, StageSeconds* stages) const;
  int64_t SampleAfter(int slot, int64_t sample) const;
  Status FillReadable(int slot, int64_t row, SampleAt at, std::span<char> scratch);
  void FillPadding(size_t input, int slot, Rows rows);
  void FillWeights(size_t input, int slot, Rows rows);
  LoadedBatch Describe(int slot) const;

  const std::vector<Form> forms_;
  const LoaderOptions options_;
  int64_t dropped_per_epoch_ = 0;
  int64_t created_bytes_ = 0;
  const int64_t scratch_bytes_;    // of one worker
  Tensor scratch_;                 // [workers, scratch_bytes_]
  std::unique_ptr<Stage> order_;   // of the worker that begins a slot
  std::vector<Element> elements_;  // one a slot, as the next two; of the rows that are filled
  std::vector<std::vector<int64_t>> batches_;  // samples of whole batches, where inputs are whole
  std::vector<LoadedBatch> loaded_;            // passed on with the slot
  Position position_;
  StageTotals totals_;
  std::unique_ptr<Prefetch> prefetch_;  // last: it ends first
};

}  // namespace ridge
