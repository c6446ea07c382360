#include "ridge/runtime/transfers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "ridge/core/rounding.h"
#include "ridge/graph/interpret.h"
#include "ridge/partition/collectives.h"
#include "ridge/plan/input_slots.h"
#include "ridge/plan/region.h"

namespace ridge {

// Elements of one persistent value.
struct Transfers::Piece {
  size_t value;
  int64_t begin, end;
};

namespace {

bool IsInput(const PersistentValue& value) { return value.kind == ValueKind::kInput; }

}  // namespace

Result<std::unique_ptr<Transfers>> Transfers::Create(const Program& program, Backend& backend,
                                                     const Memory& arena) {
  std::unique_ptr<Transfers> transfers(new Transfers(program, backend, arena));
  if (!arena.host_visible()) RIDGE_RETURN_IF_ERROR(transfers->MakeStaging());
  RIDGE_RETURN_IF_ERROR(transfers->MakeLayoutCopies());
  return transfers;
}

Transfers::Transfers(const Program& program, Backend& backend, const Memory& arena)
    : program_(program),
      backend_(backend),
      device_(backend.device()),
      stream_(device_.stream(0)),
      arena_(arena) {}

// --- staging -------------------------------------------------------------------------------------

Status Transfers::MakeStaging() {
  int64_t bytes = 0;
  const int64_t alignment = device_.memory_space().alignment_bytes;
  for (const PersistentValue& value : program_.persistent) {
    input_offsets_.push_back(IsInput(value) ? bytes : -1);
    if (IsInput(value)) bytes += RoundUp(value.size_bytes, alignment);
  }
  buffer_offset_ = bytes;
  buffer_bytes_ = StagingBufferBytes(program_);
  RIDGE_ASSIGN_OR_RETURN(staging_, device_.AllocateStaging(bytes + buffer_bytes_));
  ListUploads();
  inputs_begin_ = device_.MakeEvent();
  inputs_end_ = device_.MakeEvent();
  FindAheadStream();
  return Status();
}

Transfers::Upload Transfers::UploadOf(size_t value) const {
  const PersistentValue& input = program_.persistent[value];
  return {arena_.data() + input.offset_bytes, staging_->data() + input_offsets_[value],
          input.size_bytes, value};
}

void Transfers::ListUploads() {
  for (const StepPlan& step : program_.steps) {
    for (int slot = 0; slot < kInputSlots; ++slot) {
      std::vector<Upload>& uploads = uploads_.emplace_back();
      for (const PlannedValue& value : step.values) {
        if (!value.persistent) continue;
        const size_t index =
            InSlot(program_.persistent, static_cast<size_t>(value.persistent_index), slot);
        if (IsInput(program_.persistent[index])) uploads.push_back(UploadOf(index));
      }
    }
  }
}

// Kernels of parallel regions have the other streams to themselves.
void Transfers::FindAheadStream() {
  bool parallel = false;
  for (const StepPlan& step : program_.steps) {
    ForEachRegion(step.body, [&](const Region& region) {
      parallel |= region.kind == Region::Kind::kParallel;
    });
  }
  if (parallel || device_.streams() < 2) return;
  ahead_stream_ = &device_.stream(1);
  ahead_.resize(program_.persistent.size());
  for (std::unique_ptr<Event>& event : leaves_) event = device_.MakeEvent();
  for (std::unique_ptr<Event>& event : crossed_) event = device_.MakeEvent();
}

void Transfers::UploadAhead(int slot, std::span<const std::string> inputs) {
  if (ahead_stream_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(ahead_lock_);
  int64_t& bytes = crossed_bytes_[static_cast<size_t>(slot)];
  bytes = 0;
  ahead_stream_->Record(*leaves_[static_cast<size_t>(slot)]);
  for (size_t i = 0; i < program_.persistent.size(); ++i) {
    const PersistentValue& value = program_.persistent[i];
    const bool given = IsInput(value) && value.slot == slot &&
                       std::find(inputs.begin(), inputs.end(), value.name) != inputs.end();
    if (!given) continue;
    const Upload upload = UploadOf(i);
    ahead_stream_->Upload(upload.to, upload.from, upload.bytes);
    bytes += upload.bytes;
    ahead_[i] = {.ever = 1, .now = 1};
  }
  ahead_stream_->Record(*crossed_[static_cast<size_t>(slot)]);
}

std::optional<Transfers::Crossing> Transfers::CrossingOf(int step, int slot) const {
  if (!ReadsABatch(step, slot)) return std::nullopt;
  const auto s = static_cast<size_t>(slot);
  return Crossing{leaves_[s]->seconds(), crossed_[s]->seconds(), crossed_bytes_[s]};
}

// A step that reads none, such as an update behind micro batches, runs while the slot is filled for
// the next one.
bool Transfers::ReadsABatch(int step, int slot) const {
  const std::vector<Upload>& uploads = uploads_[static_cast<size_t>(2 * step + slot)];
  return ahead_stream_ != nullptr &&
         std::any_of(uploads.begin(), uploads.end(),
                     [&](const Upload& upload) { return ahead_[upload.value].ever != 0; });
}

// What crossed and was dropped may be under way still, so every upload comes after it.
void Transfers::UploadInputs(int step, int slot) {
  if (staging_ == nullptr) return;
  stream_.Record(*inputs_begin_);
  if (ReadsABatch(step, slot)) stream_.Wait(*crossed_[static_cast<size_t>(slot)]);
  for (const Upload& upload : uploads_[static_cast<size_t>(2 * step + slot)]) {
    const bool is_there = ahead_stream_ != nullptr && ahead_[upload.value].now != 0;
    if (!is_there) stream_.Upload(upload.to, upload.from, upload.bytes);
  }
  stream_.Record(*inputs_end_);
}

double Transfers::input_wait_s() const {
  return staging_ == nullptr ? 0 : SecondsBetween(*inputs_begin_, *inputs_end_);
}

void* Transfers::Input(const std::string& name, int slot) const {
  for (size_t i = 0; i < program_.persistent.size(); ++i) {
    const PersistentValue& value = program_.persistent[i];
    if (IsInput(value) && value.name == name && value.slot == slot) return HostBytes(i);
  }
  return nullptr;
}

// Whether the host uses its bytes where they lie.
bool Transfers::InPlace(const PersistentValue& value) const {
  return staging_ == nullptr && value.layout == kRowMajor;
}

// Row-major bytes of a variable on the device: itself, or its copy at the begin of the scratch
// region.
std::byte* Transfers::RowMajorOnDevice(const PersistentValue& value) const {
  const bool plain = value.layout == kRowMajor;
  return arena_.data() + (plain ? value.offset_bytes : program_.persistent_bytes);
}

std::byte* Transfers::HostBytes(size_t index) const {
  if (staging_ == nullptr) return RowMajorOnDevice(program_.persistent[index]);
  const int64_t offset = input_offsets_[index];
  return staging_->data() + (offset >= 0 ? offset : buffer_offset_);
}

// Host bytes of a range of the arena.  REQUIRES: it fits the buffer.
Result<const void*> Transfers::Fetch(const void* from, int64_t bytes) {
  if (staging_ == nullptr) return from;
  std::byte* to = staging_->data() + buffer_offset_;
  stream_.Download(to, from, bytes);
  RIDGE_RETURN_IF_ERROR(stream_.Synchronize());
  return static_cast<const void*>(to);
}

// --- variables -----------------------------------------------------------------------------------

Result<const void*> Transfers::Read(size_t index) {
  const PersistentValue& value = program_.persistent[index];
  if (IsInput(value)) return static_cast<const void*>(HostBytes(index));
  if (value.layout != kRowMajor) RIDGE_RETURN_IF_ERROR(CopyLayout(value, /*pack=*/false));
  return Fetch(RowMajorOnDevice(value), value.type.bytes());
}

Result<const void*> Transfers::Read(const std::string& variable) {
  for (size_t i = 0; i < program_.persistent.size(); ++i) {
    if (!IsInput(program_.persistent[i]) && program_.persistent[i].name == variable) return Read(i);
  }
  return Status(ErrorCode::kInternal, "no variable '" + variable + "' in the program");
}

Status Transfers::Commit(size_t index) {
  const PersistentValue& value = program_.persistent[index];
  if (IsInput(value)) {  // uploaded by each run
    if (uploads_ahead()) ahead_[index].now = 0;
    return Status();
  }
  if (staging_ != nullptr)
    stream_.Upload(RowMajorOnDevice(value), HostBytes(index), value.type.bytes());
  if (value.layout != kRowMajor) return CopyLayout(value, /*pack=*/true);
  return staging_ == nullptr ? Status() : stream_.Synchronize();
}

Status Transfers::Write(size_t index, const void* from) {
  const int64_t bytes = program_.persistent[index].type.bytes();
  if (bytes == 0) return Status();
  std::memcpy(HostBytes(index), from, static_cast<size_t>(bytes));
  return Commit(index);
}

// Caches the kernels: moments have the layouts of their parameters, and layers repeat.
Result<Kernel*> Transfers::LayoutCopy(const PersistentValue& value, bool pack) {
  const KernelChoice choice = pack ? backend_.Reorder(value.type, kRowMajor, value.layout)
                                   : backend_.Reorder(value.type, value.layout, kRowMajor);
  std::unique_ptr<Kernel>& kernel = layout_copies_[choice.key];
  if (kernel == nullptr) {
    RIDGE_ASSIGN_OR_RETURN(kernel, backend_.CreateReorder(value.type, choice));
    const LayoutId to = choice.output_layouts.at(0);
    kernel = backend_.Watch(std::move(kernel), "a copy to " + backend_.LayoutName(to));
  }
  return kernel.get();
}

// Created before the first step: otherwise the first checkpoint would need their code's memory
// beyond the plan.
Status Transfers::MakeLayoutCopies() {
  for (const PersistentValue& value : program_.persistent) {
    if (value.layout == kRowMajor) continue;
    for (const bool pack : {false, true}) RIDGE_RETURN_IF_ERROR(LayoutCopy(value, pack).status());
  }
  return Status();
}

Status Transfers::CopyLayout(const PersistentValue& value, bool pack) {
  RIDGE_ASSIGN_OR_RETURN(Kernel * kernel, LayoutCopy(value, pack));
  const void* from = arena_.data() + value.offset_bytes;
  void* to = RowMajorOnDevice(value);
  if (pack) from = std::exchange(to, arena_.data() + value.offset_bytes);
  std::byte* workspace =
      arena_.data() + program_.persistent_bytes + StagingWorkspaceOffset(value, program_.memory);
  RIDGE_RETURN_IF_ERROR(kernel->Enqueue(stream_, {{&from, 1}, {&to, 1}, workspace}));
  return stream_.Synchronize();
}

// --- initial values ------------------------------------------------------------------------------

namespace {

Status Fill(const PersistentValue& value, uint64_t seed, int64_t begin, int64_t end, void* data) {
  ValueInfo info;
  info.name = value.name;
  info.type = value.type;
  if (!IsInput(value)) info.init = value.init;
  return FillInitialRange(info, seed, begin, end, data);
}

// Of a piece that one thread fills.  What a file gives is read in larger ones: the parts of a
// transposed matrix that a piece needs lie in as many places as the matrix has rows.
int64_t PieceElements(const Init& init) {
  constexpr int64_t kElements = 64 * kInitialGrain;
  const Init& source = init.quantized == nullptr ? init : init.quantized->init;
  return source.tensor.in_memory() ? kElements : 16 * kElements;
}

}  // namespace

// The whole team writes it: on a large model this is also the first touch of the variables.
Status Transfers::Initialize(uint64_t seed) {
  for (Ahead& value : ahead_) value.now = 0;
  std::vector<size_t> direct;
  for (size_t i = 0; i < program_.persistent.size(); ++i) {
    if (InPlace(program_.persistent[i])) direct.push_back(i);
  }
  RIDGE_RETURN_IF_ERROR(InitializeRowMajor(direct, seed));
  for (size_t i = 0; i < program_.persistent.size(); ++i) {
    const PersistentValue& value = program_.persistent[i];
    if (InPlace(value)) continue;
    if (IsInput(value)) {
      std::memset(HostBytes(i), 0, static_cast<size_t>(value.size_bytes));
    } else if (value.init.kind == Init::Kind::kZeros) {
      RIDGE_RETURN_IF_ERROR(Clear(value));
    } else {
      RIDGE_RETURN_IF_ERROR(InitializeRowMajor({i}, seed));
      RIDGE_RETURN_IF_ERROR(Commit(i));
    }
  }
  SetCoordinates();
  return Status();
}

// Where this rank is on each axis of its mesh.
void Transfers::SetCoordinates() {
  if (!program_.place) return;
  const std::vector<MeshAxis>& axes = program_.place->mesh.axes;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    for (const int slot : {0, 1}) {
      if (void* input = Input(CoordinateInput(axes[axis].name), slot))
        *static_cast<int64_t*>(input) = program_.place->coordinate(static_cast<int>(axis));
    }
  }
}

// Zeros in any layout.
Status Transfers::Clear(const PersistentValue& value) {
  std::byte* data = arena_.data() + value.offset_bytes;
  if (staging_ != nullptr) {
    stream_.Clear(data, value.size_bytes);
    return stream_.Synchronize();
  }
  const int parts = backend_.threads();
  const int64_t page = device_.memory_space().page_bytes;
  const int64_t part_bytes = RoundUp(CeilDiv(value.size_bytes, parts), page);
  device_.ForEachPart(parts, [&](int part) {
    const int64_t begin = part * part_bytes, end = std::min(begin + part_bytes, value.size_bytes);
    if (begin < end) std::memset(data + begin, 0, static_cast<size_t>(end - begin));
  });
  return Status();
}

// Into their host bytes: of one value, or of several that the host uses where they lie.
Status Transfers::InitializeRowMajor(const std::vector<size_t>& values, uint64_t seed) {
  std::vector<Piece> pieces;
  for (const size_t index : values) {
    const PersistentValue& value = program_.persistent[index];
    const int64_t count = value.type.elements(), most = PieceElements(value.init);
    for (int64_t begin = 0; begin < count; begin += most)
      pieces.push_back({index, begin, std::min(count, begin + most)});
  }
  const int parts = backend_.threads();
  std::vector<Status> statuses(static_cast<size_t>(parts));
  device_.ForEachPart(parts, [&](int part) {
    Status& status = statuses[static_cast<size_t>(part)];
    for (auto i = static_cast<size_t>(part); i < pieces.size() && status.ok();
         i += static_cast<size_t>(parts)) {
      const auto [index, begin, end] = pieces[i];
      status = Fill(program_.persistent[index], seed, begin, end, HostBytes(index));
    }
  });
  for (const Status& status : statuses) RIDGE_RETURN_IF_ERROR(status);
  return Status();
}

// --- outputs -------------------------------------------------------------------------------------

Result<const void*> Transfers::Output(int step, const std::string& name) {
  const StepPlan& plan = program_.steps[static_cast<size_t>(step)];
  const PlannedValue& value = plan.values[static_cast<size_t>(plan.outputs.at(name))];
  return Fetch(arena_.data() + value.offset_bytes, OutputBytes(value));
}

Result<double> Transfers::Scalar(int step, const std::string& name) {
  const StepPlan& plan = program_.steps[static_cast<size_t>(step)];
  const PlannedValue& value = plan.values[static_cast<size_t>(plan.outputs.at(name))];
  return Number(value.type.dtype, arena_.data() + value.offset_bytes);
}

Result<double> Transfers::Number(DType dtype, const void* from) {
  RIDGE_ASSIGN_OR_RETURN(const void* data, Fetch(from, BytesPerElement(dtype)));
  return LoadAsDouble(dtype, data, 0);
}

Result<bool> Transfers::AllFinite(DType dtype, int64_t count, const void* from) {
  if (!IsFloat(dtype)) return true;
  const int64_t size = BytesPerElement(dtype);
  const int64_t most = staging_ == nullptr ? count : buffer_bytes_ / size;
  for (int64_t begin = 0; begin < count; begin += most) {
    const int64_t end = std::min(count, begin + most);
    RIDGE_ASSIGN_OR_RETURN(
        const void* data,
        Fetch(static_cast<const std::byte*>(from) + begin * size, (end - begin) * size));
    for (int64_t i = 0; i < end - begin; ++i) {
      if (!std::isfinite(LoadAsDouble(dtype, data, i))) return false;
    }
  }
  return true;
}

}  // namespace ridge
