// The Executor's parameters and states between steps: initial values, and row-major access.
#include <cstring>
#include <utility>

#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/interpret.h"
#include "ridge/runtime/executor.h"

namespace ridge {
namespace {

// Elements of one persistent value.
struct Piece {
  size_t value;
  int64_t begin, end;
};

void CutIntoPieces(size_t index, const PersistentValue& value, std::vector<Piece>& pieces) {
  constexpr int64_t kElements = 64 * kInitialGrain;
  const int64_t count = value.type.elements();
  for (int64_t begin = 0; begin < count; begin += kElements)
    pieces.push_back({index, begin, std::min(count, begin + kElements)});
}

void Initialize(const PersistentValue& value, uint64_t seed, const Piece& piece, void* data) {
  ValueInfo info;
  info.name = value.name;
  info.type = value.type;
  if (value.kind != ValueKind::kInput) info.init = value.init;
  FillInitialRange(info, seed, piece.begin, piece.end, data);
}

}  // namespace

// The whole team writes it: on a large model this is also the first touch of the variables.
void Executor::InitializeVariables(uint64_t seed) {
  std::vector<size_t> plain, packed;
  for (size_t i = 0; i < program_.persistent.size(); ++i)
    (program_.persistent[i].layout == kRowMajor ? plain : packed).push_back(i);
  InitializeRowMajor(plain, seed);
  for (const size_t index : packed) {
    const PersistentValue& value = program_.persistent[index];
    if (value.init.kind == Init::Kind::kZeros) {
      Clear(value);
    } else {
      InitializeRowMajor({index}, seed);
      Pack(index);
    }
  }
}

// Zeros in any layout.
void Executor::Clear(const PersistentValue& value) {
  std::byte* data = arena_.data() + value.offset_bytes;
  cpu::ParallelFor(threads_, value.size_bytes, kPageBytes, [&](int64_t begin, int64_t end) {
    std::memset(data + begin, 0, static_cast<size_t>(end - begin));
  });
}

void Executor::InitializeRowMajor(const std::vector<size_t>& values, uint64_t seed) {
  std::vector<Piece> pieces;
  for (const size_t index : values) CutIntoPieces(index, program_.persistent[index], pieces);
  const auto step = static_cast<size_t>(threads_);
  cpu::ForEachPart(threads_, [&](int part) {
    for (size_t i = static_cast<size_t>(part); i < pieces.size(); i += step)
      Initialize(program_.persistent[pieces[i].value], seed, pieces[i], RowMajor(pieces[i].value));
  });
}

void* Executor::RowMajor(size_t index) {
  const PersistentValue& value = program_.persistent[index];
  const bool plain = value.layout == kRowMajor;
  return arena_.data() + (plain ? value.offset_bytes : program_.persistent_bytes);
}

void Executor::Unpack(size_t index) { CopyLayout(index, /*pack=*/false); }
void Executor::Pack(size_t index) { CopyLayout(index, /*pack=*/true); }

// Caches the kernels: moments have the layouts of their parameters, and layers repeat.
Result<Kernel*> Executor::LayoutCopy(const PersistentValue& value, bool pack) {
  const KernelChoice choice = pack ? backend_.Reorder(value.type, kRowMajor, value.layout)
                                   : backend_.Reorder(value.type, value.layout, kRowMajor);
  std::unique_ptr<Kernel>& kernel = layout_copies_[choice.key];
  if (kernel == nullptr) {
    RIDGE_ASSIGN_OR_RETURN(kernel, backend_.CreateReorder(value.type, choice));
  }
  return kernel.get();
}

// Created before the first step: otherwise the first checkpoint would need their code's memory
// beyond the plan.
Status Executor::MakeLayoutCopies() {
  for (const PersistentValue& value : program_.persistent) {
    if (value.layout == kRowMajor) continue;
    for (const bool pack : {false, true}) RIDGE_RETURN_IF_ERROR(LayoutCopy(value, pack).status());
  }
  return Status();
}

void Executor::CopyLayout(size_t index, bool pack) {
  const PersistentValue& value = program_.persistent[index];
  if (value.layout == kRowMajor) return;
  const Result<Kernel*> kernel = LayoutCopy(value, pack);
  RIDGE_CHECK(kernel.ok(), kernel.status().message());
  const void* from = arena_.data() + value.offset_bytes;
  void* to = RowMajor(index);
  if (pack) from = std::exchange(to, arena_.data() + value.offset_bytes);
  std::byte* workspace = arena_.data() + program_.persistent_bytes + StagingWorkspaceOffset(value);
  const Status status = (*kernel)->Run({{&from, 1}, {&to, 1}, workspace});
  RIDGE_CHECK(status.ok(), status.message());
}

const PersistentValue* Executor::FindPersistent(const std::string& name) const {
  for (const PersistentValue& value : program_.persistent) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

void* Executor::Persistent(const std::string& name, int slot) {
  for (const PersistentValue& value : program_.persistent) {
    if (value.name != name || value.slot != slot) continue;
    RIDGE_CHECK(value.layout == kRowMajor, "'" + name + "' does not lie row-major");
    return arena_.data() + value.offset_bytes;
  }
  return nullptr;
}

}  // namespace ridge
