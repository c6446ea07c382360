#include "ridge/train/store/parallel_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "ridge/core/files.h"
#include "ridge/core/process.h"
#include "ridge/dist/core_share.h"
#include "ridge/dist/gather.h"
#include "ridge/train/store/checkpoint_files.h"

namespace ridge {

// Whole pieces; the first goes to another writer at each tensor, for most may be small.
std::vector<WholeVariables::Range> ParallelWriter::RangesOf(const PersistentTensor& tensor,
                                                            size_t turn) const {
  const int64_t piece = WholeVariables::kPieceBytes / BytesPerElement(tensor.type.dtype);
  const int64_t elements = tensor.type.elements(), pieces = (elements + piece - 1) / piece;
  const auto count = static_cast<int64_t>(writers_.size());
  std::vector<WholeVariables::Range> ranges(static_cast<size_t>(communicator_.size()));
  for (int64_t i = 0; i < count; ++i) {
    const int writer = writers_[(static_cast<size_t>(i) + turn) % writers_.size()];
    ranges[static_cast<size_t>(writer)] = {std::min(pieces * i / count * piece, elements),
                                           std::min(pieces * (i + 1) / count * piece, elements)};
  }
  return ranges;
}

// Rank 0 makes the file, then the writers open it.
Status ParallelWriter::Open(File& file) {
  if (ranks_.leads()) file.status = MakeFileOf(file.path, file.size_bytes);
  RIDGE_RETURN_IF_ERROR(ranks_.ShareFailure(file.status));
  const bool writes = std::binary_search(writers_.begin(), writers_.end(), ranks_.rank());
  if (!file.status.ok() || !writes) return ranks_.ShareFailure(file.status);
  Result<SharedFile> own = SharedFile::Open(file.path);
  file.status = own.status();
  if (own.ok()) file.open.emplace(std::move(*own));
  return ranks_.ShareFailure(file.status);
}

// The others need this rank's parts after a failure, too.
Status ParallelWriter::WriteTensors(File& file, std::span<const PersistentTensor> tensors) {
  int64_t begin = std::ssize(file.head);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const PersistentTensor& tensor = tensors[i];
    const std::vector<WholeVariables::Range> ranges = RangesOf(tensor, i);
    const int64_t size = BytesPerElement(tensor.type.dtype);
    int64_t place = begin + ranges[static_cast<size_t>(ranks_.rank())].begin * size;
    const auto take = [&](const void* data, int64_t bytes) {
      const std::string_view text(static_cast<const char*>(data), static_cast<size_t>(bytes));
      if (file.status.ok()) file.status = file.open->WriteAt(place, text);
      place += bytes;
      return Status();
    };
    RIDGE_RETURN_IF_ERROR(tensor.ReadRanges(ranges, ranks_.rank(), take));
    begin += tensor.type.bytes();
  }
  return Status();
}

Status ParallelWriter::JoinDigests(File& file) {
  std::vector<double> numbers;
  if (file.open) {
    for (const SharedFile::Range& range : file.open->ranges()) {
      numbers.push_back(static_cast<double>(range.begin));
      numbers.push_back(static_cast<double>(range.end));
      numbers.push_back(range.crc32c);
    }
  }
  RIDGE_ASSIGN_OR_RETURN(const std::vector<std::vector<double>> all, ranks_.All(numbers));
  std::vector<SharedFile::Range> ranges;
  for (const std::vector<double>& told : all) {
    for (size_t i = 0; i + 2 < told.size(); i += 3)
      ranges.push_back({static_cast<int64_t>(told[i]), static_cast<int64_t>(told[i + 1]),
                        static_cast<uint32_t>(told[i + 2])});
  }
  const std::optional<uint32_t> crc = JoinRanges(ranges, file.size_bytes);
  RIDGE_CHECK(crc.has_value(), "the writers' ranges are the whole file");
  file.digest = {file.size_bytes, *crc};
  return Status();
}

Status ParallelWriter::WriteTogether(File& file, std::span<const PersistentTensor> tensors) {
  RIDGE_ASSIGN_OR_RETURN(file.path, TextOfFirst(communicator_, file.path));
  if (file.path.empty()) file.status = Status(ErrorCode::kUnavailable, "rank 0 has no folder");
  if (!file.status.ok()) return Status();
  RIDGE_RETURN_IF_ERROR(Open(file));
  if (!file.status.ok()) return Status();
  if (ranks_.leads()) file.status = file.open->WriteAt(0, file.head);
  RIDGE_RETURN_IF_ERROR(WriteTensors(file, tensors));
  if (file.status.ok() && file.open) file.status = file.open->Close();
  RIDGE_RETURN_IF_ERROR(ranks_.ShareFailure(file.status));
  return file.status.ok() ? JoinDigests(file) : Status();
}

Result<FileDigest> ParallelWriter::Write(const std::string& path,
                                         std::span<const PersistentTensor> tensors) {
  RIDGE_ASSIGN_OR_RETURN(std::string head, HeadOf(tensors));
  File file = {path, std::move(head), 0, {}, {}, {}};
  file.size_bytes = std::ssize(file.head);
  for (const PersistentTensor& tensor : tensors) file.size_bytes += tensor.type.bytes();
  lost_ = WriteTogether(file, tensors);
  RIDGE_RETURN_IF_ERROR(lost_);
  if (!file.status.ok()) return file.status;
  return file.digest;
}

Status ParallelWriter::Join(const CheckpointTensors& tensors) {
  if (Write("", tensors.parameters).ok()) (void)Write("", tensors.state).ok();
  return lost_;
}

namespace {

// Whether each of the ranks sees what rank 0 writes there; by rank.
Result<std::vector<bool>> WhoSees(Communicator& communicator, const std::string& folder) {
  std::string path;
  if (communicator.rank() == 0) {
    path = fmt::format("{}/.seen-{}-{}", folder, getpid(),
                       static_cast<int64_t>(MonotonicSeconds() * 1e9));
    if (!WriteFileAtomically(path, "").ok()) path = "/";  // it will say so when it writes
  }
  RIDGE_ASSIGN_OR_RETURN(const std::string of_first, TextOfFirst(communicator, path));
  std::error_code ignored;
  const char sees = std::filesystem::exists(of_first, ignored) ? 1 : 0;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<char> all, GatherFromAll(communicator, sees));
  if (!path.empty()) std::filesystem::remove(path, ignored);
  return std::vector<bool>(all.begin(), all.end());
}

Result<std::vector<int>> SpreadOver(int ranks, const std::string& how) {
  int count = 0;
  std::from_chars(how.data(), how.data() + how.size(), count);
  if (count > ranks) {
    return InvalidArgument(
        fmt::format("--checkpoint-writers {}: {} devices train. hint: --checkpoint-writers {}", how,
                    ranks, ranks));
  }
  std::vector<int> writers;
  for (int i = 0; i < count; ++i) writers.push_back(i * ranks / count);
  return writers;
}

}  // namespace

Result<std::vector<int>> ChooseWriters(Communicator* communicator, const std::string& how,
                                       const std::string& folder) {
  if (communicator == nullptr) return std::vector<int>{0};
  const bool automatic = how == "auto";
  RIDGE_ASSIGN_OR_RETURN(
      const std::vector<int> writers,
      automatic ? FirstRankOfMachines(*communicator) : SpreadOver(communicator->size(), how));
  if (writers.size() == 1) return writers;
  RIDGE_ASSIGN_OR_RETURN(const std::vector<bool> sees, WhoSees(*communicator, folder));
  for (const int rank : writers) {
    if (sees[static_cast<size_t>(rank)]) continue;
    if (automatic) return std::vector<int>{0};
    return InvalidArgument(fmt::format(
        "--checkpoint-writers {}: rank {} does not see {} of rank 0. hint: an --out that "
        "all machines share, or --checkpoint-writers 1",
        how, rank, folder));
  }
  return writers;
}

}  // namespace ridge
