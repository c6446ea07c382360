#include "ridge/runtime/tree_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ridge/backend/host_kernel.h"
#include "ridge/dist/rank_doing.h"
#include "ridge/dist/tree_sum.h"
#include "ridge/runtime/block_adder.h"
#include "ridge/runtime/rank_kernels.h"

namespace ridge {

// The sum of a bucket over the ranks, beside the step.
class SumJob : public ExchangeThread::Job {
 public:
  SumJob(Communicator& communicator, const std::string& step, const SliceShare& share,
         SumBlock block, TreeSum::Place place)
      : communicator_(communicator),
        name_(KeptName(fmt::format("all_reduce '{}'", step))),
        sum_(communicator, share, std::move(block), std::move(place)) {}

  Status Run() override {
    const NamedExchanges named(communicator_, name_);
    communicator_.SetPatient(true);
    const Status status = sum_.Run([](const TreeSum::Work& work) { work(0, 1); });
    communicator_.SetPatient(false);
    return status;
  }

 private:
  Communicator& communicator_;
  const char* const name_;
  TreeSum sum_;
};

namespace {

// Adds the first output to the second, that to the third, and so on.  Only the last one keeps its
// sum: those between are a tile in the cache, since memory is what this takes.
class TreeAddKernel : public HostKernel<TreeAddKernel> {
 public:
  // `ranges`: of the block, that are added.
  TreeAddKernel(Backend& backend, SumBlock block, std::vector<ByteRange> ranges)
      : device_(backend.device()),
        threads_(backend.threads()),
        block_(std::move(block)),
        ranges_(std::move(ranges)) {}

  Status Run(const KernelBuffers& buffers) {
    const std::span<void* const> blocks = buffers.outputs;
    if (blocks.size() < 2) return Status();
    device_.ForEachPart(threads_, [&](int part) {
      for (const ByteRange& range : ranges_) {
        const ByteRange chunk = ChunkOf(part, threads_, range.bytes());
        const int64_t end = range.begin + chunk.end;
        for (int64_t begin = range.begin + chunk.begin; begin < end; begin += kTileBytes)
          AddTile(begin, std::min(begin + kTileBytes, end), blocks);
      }
    });
    return Status();
  }

 private:
  static constexpr int64_t kTileBytes = int64_t{1} << 13;

  void AddTile(int64_t begin, int64_t end, std::span<void* const> blocks) const {
    alignas(kChunkLine) std::array<std::byte, kTileBytes> tile;
    const auto* sum = static_cast<const std::byte*>(blocks[0]);
    for (size_t i = 1; i < blocks.size(); ++i) {
      auto* own = static_cast<std::byte*>(blocks[i]);
      std::byte* to = i + 1 == blocks.size() ? own : tile.data() - begin;
      AddSums(block_, begin, end, own, sum, to);
      sum = to;
    }
  }

  Device& device_;
  const int threads_;
  const SumBlock block_;
  const std::vector<ByteRange> ranges_;
};

// Inputs: n values of each of this rank's slices.  Output: those of all slices.
class AllGatherKernel : public Kernel {
 public:
  // How much of it a kernel does.
  enum class Half : uint8_t { kBoth, kStart };

  // `communicator`: null where one rank has all slices.
  AllGatherKernel(const SliceShare& share, const OpCall& call, Communicator* communicator,
                  const std::string& step, Half half)
      : share_(share),
        value_bytes_(static_cast<size_t>(call.inputs[0].bytes())),
        slice_bytes_(value_bytes_ * call.inputs.size()),
        communicator_(communicator),
        half_(half),
        name_(KeptName(fmt::format("all_gather '{}'", step))),
        sends_(static_cast<size_t>(share.ranks)),
        receives_(static_cast<size_t>(share.ranks)) {}

  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    auto* all = static_cast<std::byte*>(buffers.outputs[0]);
    std::byte* to = PartOf(all, share_.rank).data();
    for (const void* value : buffers.inputs) {
      stream.Copy(to, value, static_cast<int64_t>(value_bytes_));
      to += value_bytes_;
    }
    if (communicator_ == nullptr) return Status();
    const NamedExchanges named(*communicator_, name_);
    for (int rank = 0; rank < share_.ranks; ++rank) {
      sends_[static_cast<size_t>(rank)] = PartOf(all, share_.rank);
      receives_[static_cast<size_t>(rank)] = PartOf(all, rank);
    }
    return half_ == Half::kStart ? communicator_->Begin(sends_, receives_)
                                 : communicator_->Exchange(sends_, receives_);
  }

 private:
  std::span<std::byte> PartOf(std::byte* all, int rank) const {
    const SliceRange owned = share_.OwnedBy(rank);
    return {all + static_cast<size_t>(owned.first) * slice_bytes_,
            static_cast<size_t>(owned.count()) * slice_bytes_};
  }

  const SliceShare share_;
  const size_t value_bytes_, slice_bytes_;
  Communicator* const communicator_;
  const Half half_;
  const char* const name_;
  std::vector<std::span<const std::byte>> sends_;
  std::vector<std::span<std::byte>> receives_;
};

// Waits for what an AllGatherKernel began.
class GatherWaitKernel : public HostKernel<GatherWaitKernel> {
 public:
  GatherWaitKernel(Communicator& communicator, const std::string& step)
      : communicator_(communicator), name_(KeptName(fmt::format("all_gather '{}'", step))) {}

  Status Run(const KernelBuffers&) {
    const NamedExchanges named(communicator_, name_);
    return communicator_.Finish();
  }

 private:
  Communicator& communicator_;
  const char* const name_;
};

// The same where the host does not reach the blocks.
class DeviceTreeAddKernel : public Kernel {
 public:
  explicit DeviceTreeAddKernel(BlockAdder adder) : adder_(std::move(adder)) {}

  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    for (size_t i = 1; i < buffers.outputs.size(); ++i) {
      auto* own = static_cast<std::byte*>(buffers.outputs[i]);
      const auto* sum = static_cast<const std::byte*>(buffers.outputs[i - 1]);
      RIDGE_RETURN_IF_ERROR(adder_.Add(stream, own, sum, own));
    }
    return Status();
  }

 private:
  const BlockAdder adder_;
};

class DeviceTreeSumKernel : public Kernel {
 public:
  DeviceTreeSumKernel(Communicator& ranks, const std::string& step, std::unique_ptr<TreeSum> sum,
                      BlockAdder adder)
      : ranks_(ranks),
        name_(KeptName(fmt::format("all_reduce '{}'", step))),
        sum_(std::move(sum)),
        adder_(std::move(adder)) {}

  Status Enqueue(Stream& stream, const KernelBuffers&) override {
    const NamedExchanges named(ranks_, name_);
    return sum_->Run(
        TreeSum::Add([&](const std::byte* left, const std::byte* right, std::byte* to) {
          return adder_.Add(stream, left, right, to);
        }));
  }

 private:
  Communicator& ranks_;
  const char* const name_;
  const std::unique_ptr<TreeSum> sum_;
  const BlockAdder adder_;
};

class TreeSumKernel : public HostKernel<TreeSumKernel> {
 public:
  TreeSumKernel(Backend& backend, Communicator& ranks, const std::string& step,
                std::unique_ptr<TreeSum> sum)
      : device_(backend.device()),
        threads_(backend.threads()),
        ranks_(ranks),
        name_(KeptName(fmt::format("all_reduce '{}'", step))),
        sum_(std::move(sum)) {}

  Status Run(const KernelBuffers&) {
    const NamedExchanges named(ranks_, name_);
    return sum_->Run([this](const TreeSum::Work& work) {
      device_.ForEachPart(threads_, [&](int part) { work(part, threads_); });
    });
  }

 private:
  Device& device_;
  const int threads_;
  Communicator& ranks_;
  const char* const name_;
  const std::unique_ptr<TreeSum> sum_;
};

// Runs another kernel on the thread that has the communicator, and waits for it.
class OnExchangeThread : public HostKernel<OnExchangeThread> {
 public:
  OnExchangeThread(std::unique_ptr<Kernel> kernel, Backend& backend, ExchangeThread& thread)
      : thread_(thread), job_(std::move(kernel), backend.device().stream(0)) {}

  Status Run(const KernelBuffers& buffers) {
    job_.buffers = buffers;
    thread_.Post(job_);
    return thread_.Wait(job_);
  }

 private:
  struct KernelJob : ExchangeThread::Job {
    KernelJob(std::unique_ptr<Kernel> kernel, Stream& stream)
        : kernel(std::move(kernel)), stream(stream) {}
    Status Run() override { return kernel->Enqueue(stream, buffers); }

    const std::unique_ptr<Kernel> kernel;
    Stream& stream;
    KernelBuffers buffers;
  };

  ExchangeThread& thread_;
  KernelJob job_;
};

class StartKernel : public HostKernel<StartKernel> {
 public:
  StartKernel(std::shared_ptr<SumJob> job, ExchangeThread& thread)
      : job_(std::move(job)), thread_(thread) {}
  Status Run(const KernelBuffers&) {
    thread_.Post(*job_);
    return Status();
  }

 private:
  const std::shared_ptr<SumJob> job_;
  ExchangeThread& thread_;
};

class WaitKernel : public HostKernel<WaitKernel> {
 public:
  WaitKernel(std::shared_ptr<SumJob> job, ExchangeThread& thread)
      : job_(std::move(job)), thread_(thread) {}
  Status Run(const KernelBuffers&) { return thread_.Wait(*job_); }

 private:
  const std::shared_ptr<SumJob> job_;
  ExchangeThread& thread_;
};

}  // namespace

SumBlock TreeMemory::block() const {
  SumBlock block;
  const int64_t begin = SumOffset(program, step, step.sums.front(), 0);
  const std::vector<int>& narrow = step.tree->narrow;
  for (const int sum : step.sums) {
    const PersistentValue& value = program.persistent[static_cast<size_t>(sum)];
    const int64_t elements = ElementsIn(value.layout, value.type, value.size_bytes);
    const bool rounded = std::find(narrow.begin(), narrow.end(), sum) != narrow.end();
    block.values.push_back(
        {SumOffset(program, step, sum, 0) - begin, elements, value.type.dtype, rounded});
  }
  block.bytes = step.tree->block_bytes;
  block.segment_bytes = step.tree->segment_bytes;
  return block;
}

std::vector<ByteRange> TreeMemory::RangesOf(const std::vector<int>& sums) const {
  std::vector<ByteRange> ranges;
  const int64_t block = SumOffset(program, step, step.sums.front(), 0);
  for (const int sum : sums) {
    const int64_t begin = SumOffset(program, step, sum, 0) - block;
    const int64_t bytes =
        program.memory.Aligned(program.persistent[static_cast<size_t>(sum)].size_bytes);
    if (!ranges.empty() && ranges.back().end == begin) {
      ranges.back().end += bytes;
    } else {
      ranges.push_back({begin, begin + bytes});
    }
  }
  return ranges;
}

std::byte* TreeMemory::BlockAt(int64_t position) const {
  return arena + SumOffset(program, step, step.sums.front(), position);
}

std::vector<void*> BlocksToAdd(const TreeMemory& memory, int64_t slice) {
  const SliceFold& fold = memory.step.tree->folds[static_cast<size_t>(slice)];
  std::vector<void*> blocks;
  for (int64_t i = 0; i <= fold.additions; ++i) blocks.push_back(memory.BlockAt(fold.position - i));
  return blocks;
}

namespace {

// These sums as a block of their own.  REQUIRES: they lie side by side.
struct Bucket {
  SumBlock block;
  int64_t begin_bytes = 0;  // from the whole block's
};
Bucket BucketOf(const TreeMemory& memory, const std::vector<int>& sums) {
  const std::vector<ByteRange> ranges = memory.RangesOf(sums);
  RIDGE_CHECK(ranges.size() == 1, "a bucket's sums lie side by side");
  SumBlock whole = memory.block();
  Bucket bucket = {{{}, ranges.front().bytes(), whole.segment_bytes}, ranges.front().begin};
  for (SumBlock::Values values : whole.values) {
    values.offset_bytes -= bucket.begin_bytes;
    if (values.offset_bytes >= 0 && values.offset_bytes < bucket.block.bytes)
      bucket.block.values.push_back(values);
  }
  return bucket;
}

TreeSum::Place PlaceOf(const TreeMemory& memory, const Bucket& bucket, std::byte* scratch) {
  const SliceShare& share = memory.step.tree->share;
  TreeSum::Place place;
  place.scratch = scratch;
  const size_t parts = PartsOf(share.owned(), share.slices).size();
  for (size_t k = 0; k < parts; ++k)
    place.parts.push_back(memory.BlockAt(static_cast<int64_t>(k)) + bucket.begin_bytes);
  return place;
}

std::shared_ptr<SumJob> JobOf(const TreeMemory& memory, const PlannedNode& node,
                              TreeExchange& exchange) {
  std::shared_ptr<SumJob>& job = exchange.jobs[{&memory.step, node.sums.front()}];
  if (job != nullptr) return job;
  // The start's result, which is the wait's input.
  const int scratch = node.inputs.empty() ? node.outputs.front() : node.inputs.front();
  std::byte* at = memory.arena + memory.step.values[static_cast<size_t>(scratch)].offset_bytes;
  Bucket bucket = BucketOf(memory, node.sums);
  TreeSum::Place place = PlaceOf(memory, bucket, at);
  job = std::make_shared<SumJob>(exchange.communicator, memory.step.name, memory.step.tree->share,
                                 std::move(bucket.block), std::move(place));
  return job;
}

// In line.
Result<std::unique_ptr<Kernel>> MakeTreeSum(const TreeMemory& memory, const PlannedNode& node,
                                            Backend& backend, Communicator& communicator) {
  const Bucket bucket = BucketOf(memory, node.sums);
  TreeSum::Place place = PlaceOf(memory, bucket, memory.arena + node.workspace_offset);
  auto sum = std::make_unique<TreeSum>(communicator, memory.step.tree->share, bucket.block,
                                       std::move(place));
  const std::string& step = memory.step.name;
  if (memory.host_reaches) {
    return std::unique_ptr<Kernel>(
        std::make_unique<TreeSumKernel>(backend, communicator, step, std::move(sum)));
  }
  RIDGE_ASSIGN_OR_RETURN(BlockAdder adder,
                         BlockAdder::Create(backend, bucket.block, {sum->chunk()}));
  return std::unique_ptr<Kernel>(
      std::make_unique<DeviceTreeSumKernel>(communicator, step, std::move(sum), std::move(adder)));
}

Result<std::unique_ptr<Kernel>> MakeTreeAdd(const TreeMemory& memory, const PlannedNode& node,
                                            Backend& backend) {
  if (memory.host_reaches) {
    return std::unique_ptr<Kernel>(
        std::make_unique<TreeAddKernel>(backend, memory.block(), memory.RangesOf(node.sums)));
  }
  RIDGE_ASSIGN_OR_RETURN(BlockAdder adder,
                         BlockAdder::Create(backend, memory.block(), memory.RangesOf(node.sums)));
  return std::unique_ptr<Kernel>(std::make_unique<DeviceTreeAddKernel>(std::move(adder)));
}

// The step waits for a gather, so it passes the buckets that left before it.
std::unique_ptr<Kernel> MakeGather(const TreeMemory& memory, const PlannedNode& node,
                                   const TreeRanks& ranks) {
  Communicator* over = ranks.communicator;
  if (ranks.exchange != nullptr) over = over->urgent();
  RIDGE_CHECK(over != nullptr, "what exchanges beside a step lets others pass");
  if (node.choice.kernel == kAllGatherWaitKernel)
    return std::make_unique<GatherWaitKernel>(*over, memory.step.name);
  using Half = AllGatherKernel::Half;
  const bool starts = node.choice.kernel == kAllGatherStartKernel;
  return std::make_unique<AllGatherKernel>(memory.step.tree->share, node.call, over,
                                           memory.step.name, starts ? Half::kStart : Half::kBoth);
}

}  // namespace

bool OverlapsExchange(const Program& program) {
  for (const StepPlan& step : program.steps) {
    for (const PlannedNode& node : step.nodes) {
      if (node.def == nullptr && node.choice.kernel == kTreeSumStartKernel) return true;
    }
  }
  return false;
}

namespace {

// Of a program whose ranks are here.
Result<std::unique_ptr<Kernel>> MakeWithRanks(const TreeMemory& memory, const PlannedNode& node,
                                              Backend& backend, const TreeRanks& ranks) {
  const std::string& name = node.choice.kernel;
  std::unique_ptr<Kernel> kernel;
  if (name == kTreeSumStartKernel) {
    kernel =
        std::make_unique<StartKernel>(JobOf(memory, node, *ranks.exchange), ranks.exchange->thread);
  } else if (name == kTreeSumWaitKernel) {
    kernel =
        std::make_unique<WaitKernel>(JobOf(memory, node, *ranks.exchange), ranks.exchange->thread);
  } else if (IsGather(node)) {
    kernel = MakeGather(memory, node, ranks);
  } else {
    RIDGE_ASSIGN_OR_RETURN(kernel, MakeTreeSum(memory, node, backend, *ranks.communicator));
    if (ranks.exchange != nullptr)
      kernel =
          std::make_unique<OnExchangeThread>(std::move(kernel), backend, ranks.exchange->thread);
  }
  if (ranks.spent_s == nullptr) return {std::move(kernel)};
  return Timed(std::move(kernel), backend, *ranks.spent_s);
}

}  // namespace

Result<std::unique_ptr<Kernel>> MakeTreeKernel(const TreeMemory& memory, const PlannedNode& node,
                                               Backend& backend, const TreeRanks& ranks) {
  RIDGE_RETURN_IF_ERROR(CheckSums(memory.block()));
  const SliceShare& share = memory.step.tree->share;
  const std::string& name = node.choice.kernel;
  std::unique_ptr<Kernel> kernel;
  if (name == kTreeAddKernel) {
    RIDGE_ASSIGN_OR_RETURN(kernel, MakeTreeAdd(memory, node, backend));
  } else if (name == kAllGatherKernel && share.ranks == 1) {
    kernel = std::make_unique<AllGatherKernel>(share, node.call, nullptr, memory.step.name,
                                               AllGatherKernel::Half::kBoth);
  } else if (ranks.communicator == nullptr) {
    kernel = MakeNobodyElse(share.ranks);
  } else {
    RIDGE_ASSIGN_OR_RETURN(kernel, MakeWithRanks(memory, node, backend, ranks));
  }
  return {std::move(kernel)};
}

}  // namespace ridge
