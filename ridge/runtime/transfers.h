// Transfers: what the host writes into device memory and reads from it.  Nothing else in the
// program follows an address of the arena.
//
// Where the host reaches the memory, its bytes are used where they lie and nothing is copied.
// Elsewhere inputs are filled in staging memory, from where Executor::Run() uploads them, and
// variables and outputs go through one buffer there, piece by piece where they are larger.  Where
// the device has a second stream, batches cross on it while a step runs.
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ridge/backend/backend.h"
#include "ridge/plan/program.h"
#include "ridge/plan/staging.h"

namespace ridge {

// Calls fill(begin, end, to) for pieces of [0, bytes), whose host bytes begin at `to`; what it
// writes there is in `memory` from `offset` on.  Host memory is one piece.
template <typename F>
Status WriteBytes(Device& device, const Memory& memory, int64_t offset, int64_t bytes,
                  const F& fill) {
  if (memory.host_visible()) {
    fill(int64_t{0}, bytes, memory.data() + offset);
    return Status();
  }
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Memory> staging,
                         device.AllocateStaging(std::min(bytes, kStagingPieceBytes)));
  Stream& stream = device.stream(0);
  for (int64_t begin = 0; begin < bytes; begin += kStagingPieceBytes) {
    const int64_t end = std::min(begin + kStagingPieceBytes, bytes);
    fill(begin, end, staging->data());
    stream.Upload(memory.data() + offset + begin, staging->data(), end - begin);
    RIDGE_RETURN_IF_ERROR(stream.Synchronize());
  }
  return Status();
}

class Transfers {
 public:
  // Makes the kernels that copy variables between layouts.  All three outlive this, and `program`
  // changes nothing but times.
  static Result<std::unique_ptr<Transfers>> Create(const Program& program, Backend& backend,
                                                   const Memory& arena);

  // Host bytes of an input in slot 0 or 1, to be filled before a run on this slot; they stay where
  // they are.  nullptr when there is none.  Another thread may fill the slot that does not run.
  void* Input(const std::string& name, int slot = 0) const;
  // Enqueues uploads of the inputs that the step reads, but for those that cross already or have
  // crossed.
  void UploadInputs(int step, int slot);
  // How long the last UploadInputs() kept the device's main stream, by the device's clock; 0 where
  // nothing is uploaded.  REQUIRES: the stream has been synchronized since.
  double input_wait_s() const;

  // Of the host, for copies to and from the device.
  int64_t staging_bytes() const { return staging_ == nullptr ? 0 : staging_->bytes(); }

  // Whether UploadAhead() does anything.
  bool uploads_ahead() const { return ahead_stream_ != nullptr; }
  // From now on all inputs are uploaded by UploadInputs().  REQUIRES: nothing has crossed.
  void UploadInLine() { ahead_stream_ = nullptr; }
  // Uploads these inputs beside the step that runs, from their host bytes, which do not change
  // until a step has read them; the next UploadInputs() of the slot waits for them.  They stay on
  // the device until the next call for the slot, or Commit().  Any thread may call it for a slot
  // that no step reads.
  void UploadAhead(int slot, std::span<const std::string> inputs);
  // When the batch of a slot crossed that way, by the device's clock, and its bytes.
  struct Crossing {
    double begin_s = 0, end_s = 0;
    int64_t bytes = 0;
  };
  // None: the step reads none that did.  REQUIRES: the step has ended, and the slot was not filled
  // since.
  std::optional<Crossing> CrossingOf(int step, int slot) const;

  // Fills all variables with their initial values, and inputs with zeros, but for a rank's place on
  // its mesh; what it has a part of is set by WholeVariables.  Fails when values lie in
  // a file that can't be read or has changed; variables mean nothing then.
  Status Initialize(uint64_t seed);

  // Row-major bytes of persistent value `index`, a variable in any layout or an input's slot; valid
  // until the next call here or of a step.  Other layouts overwrite the outputs of the last step.
  Result<const void*> Read(size_t index);
  Result<const void*> Read(const std::string& variable);
  // Room for new row-major bytes of the value; Commit() stores them.
  void* Edit(size_t index) { return HostBytes(index); }
  Status Commit(size_t index);
  Status Write(size_t index, const void* from);

  // An output of the step that ran last, row-major; valid until the next call here or of a step.
  // REQUIRES: there is one of this name.
  Result<const void*> Output(int step, const std::string& name);
  Result<double> Scalar(int step, const std::string& name);  // its first element

  // Whether `count` elements at an address of the arena are finite.
  Result<bool> AllFinite(DType dtype, int64_t count, const void* from);
  // Element 0 at an address of the arena.
  Result<double> Number(DType dtype, const void* from);

 private:
  // Of an input slot: its bytes on the device, and the host's.
  struct Upload {
    std::byte* to;
    const std::byte* from;
    int64_t bytes;
    size_t value;
  };
  struct Piece;

  Transfers(const Program& program, Backend& backend, const Memory& arena);
  Status MakeStaging();
  void ListUploads();
  void FindAheadStream();
  Upload UploadOf(size_t value) const;
  bool ReadsABatch(int step, int slot) const;
  Status MakeLayoutCopies();
  Result<Kernel*> LayoutCopy(const PersistentValue& value, bool pack);
  Status CopyLayout(const PersistentValue& value, bool pack);
  std::byte* RowMajorOnDevice(const PersistentValue& value) const;
  std::byte* HostBytes(size_t index) const;
  bool InPlace(const PersistentValue& value) const;
  Result<const void*> Fetch(const void* from, int64_t bytes);
  Status Clear(const PersistentValue& value);
  void SetCoordinates();
  Status InitializeRowMajor(const std::vector<size_t>& values, uint64_t seed);

  const Program& program_;
  Backend& backend_;
  Device& device_;
  Stream& stream_;
  const Memory& arena_;
  std::map<std::string, std::unique_ptr<Kernel>> layout_copies_;  // by KernelChoice::key
  // Only where the host does not reach the arena.
  std::unique_ptr<Memory> staging_;
  std::vector<int64_t> input_offsets_;  // in staging, by persistent value; -1: no input
  int64_t buffer_offset_ = 0, buffer_bytes_ = 0;
  std::vector<std::vector<Upload>> uploads_;  // by 2 * step + slot
  Stream* ahead_stream_ = nullptr;
  std::mutex ahead_lock_;  // one thread at a time enqueues there
  struct Ahead {
    uint8_t ever = 0;  // it is an input of batches that cross
    uint8_t now = 0;   // it crosses, or has crossed, and was not committed since
  };
  std::vector<Ahead> ahead_;  // by persistent value; by who has its slot
  std::array<std::unique_ptr<Event>, 2> leaves_, crossed_;  // by slot
  std::array<int64_t, 2> crossed_bytes_ = {};
  std::unique_ptr<Event> inputs_begin_, inputs_end_;  // of the last UploadInputs()
};

}  // namespace ridge
