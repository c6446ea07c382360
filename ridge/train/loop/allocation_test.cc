// An update allocates nothing: counted by replacing operator new in this test program.  Kernels of
// the reference backend, which keep small lists, are not counted; those of the CPU backend are, but
// for what oneDNN allocates at each execution.
#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/dist/test_ranks.h"
#include "ridge/train/loop/test_support.h"

namespace {

std::atomic<int64_t> allocations{0};
thread_local bool in_kernel = false;

// Where oneDNN's code lies.
struct Library {
  uintptr_t begin = UINTPTR_MAX;
  uintptr_t end = 0;
};

int FindOneDnn(dl_phdr_info* object, size_t, void* library) {
  if (std::strstr(object->dlpi_name, "libdnnl") == nullptr) return 0;
  auto& found = *static_cast<Library*>(library);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    found.begin = std::min<uintptr_t>(found.begin, object->dlpi_addr + part.p_vaddr);
    found.end = std::max<uintptr_t>(found.end, object->dlpi_addr + part.p_vaddr + part.p_memsz);
  }
  return 1;
}

// Every allocation of this program asks, so the library is looked for once.
bool IsOneDnn(void* caller) {
  static const Library library = [] {
    Library found;
    dl_iterate_phdr(FindOneDnn, &found);
    return found;
  }();
  const auto address = reinterpret_cast<uintptr_t>(caller);
  return library.begin <= address && address < library.end;
}

void* Allocate(std::size_t bytes, std::size_t alignment, void* caller) {
  if (!in_kernel && !IsOneDnn(caller)) allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return Allocate(bytes, alignof(std::max_align_t), __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, alignof(std::max_align_t), __builtin_return_address(0));
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, const std::nothrow_t&) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { std::free(data); }

namespace ridge {
namespace {

class UncountedKernel : public Kernel {
 public:
  explicit UncountedKernel(std::unique_ptr<Kernel> kernel) : kernel_(std::move(kernel)) {}
  Status Enqueue(Stream& stream, const KernelBuffers& buffers) override {
    in_kernel = true;
    Status status = kernel_->Enqueue(stream, buffers);
    in_kernel = false;
    return status;
  }

 private:
  std::unique_ptr<Kernel> kernel_;
};

// The reference backend with kernels that are not counted.
class UncountedBackend : public Backend {
 public:
  KernelCandidates Candidates(const OpDef& op, const OpCall& call,
                              std::span<const LayoutId> available) override {
    return inner_->Candidates(op, call, available);
  }
  KernelCandidates SerialCandidates(const OpDef&, const OpCall&,
                                    std::span<const LayoutId>) override {
    return {};
  }
  std::optional<KernelChoice> SerialReorder(const TensorType&, LayoutId, LayoutId) override {
    return std::nullopt;
  }
  int64_t LayoutBytes(LayoutId layout, const TensorType& type) const override {
    return inner_->LayoutBytes(layout, type);
  }
  std::string LayoutName(LayoutId layout) const override { return inner_->LayoutName(layout); }
  KernelChoice Reorder(const TensorType& type, LayoutId from, LayoutId to) override {
    return inner_->Reorder(type, from, to);
  }
  const RewriteRules& rules() const override { return inner_->rules(); }
  const CostModel& nominal() const override { return inner_->nominal(); }
  const std::string& name() const override { return inner_->name(); }
  int threads() const override { return inner_->threads(); }
  Device& device() override { return inner_->device(); }
  bool Multiplies(DType operands) const override { return inner_->Multiplies(operands); }
  Result<std::unique_ptr<Kernel>> Create(const OpDef& op, const OpCall& call,
                                         const KernelChoice& choice) override {
    RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, inner_->Create(op, call, choice));
    return std::unique_ptr<Kernel>(std::make_unique<UncountedKernel>(std::move(kernel)));
  }
  Result<std::unique_ptr<Kernel>> CreateReorder(const TensorType& type,
                                                const KernelChoice& choice) override {
    return inner_->CreateReorder(type, choice);
  }

 private:
  std::unique_ptr<Backend> inner_ = MakeReferenceBackend();
};

struct Counter : TrainObserver {
  void OnStep(const StepReport& report) override {
    const int64_t now = allocations.load();
    // The loader's thread warms up in the first steps; every 50th writes a report.
    if (report.step > 10 && report.step % 50 > 1) in_steps += now - last;
    last = allocations.load();
  }
  int64_t last = 0;
  int64_t in_steps = 0;
};

// Of a device that tells something, with nothing to say against it.
struct BusyDevice : CounterSource {
  DeviceCounters Read() override { return {.utilization = 1, .power_w = 400, .energy_j = 1000}; }
};

constexpr char kConvolutions[] = R"(graph net
  columns = input f32[batch,12]
  label = input i64[batch]
  image = reshape(columns, dims=[0,1,3,4])
  kernel = parameter f32[16,1,3,3] init=uniform(0.5)
  deep = parameter f32[16,16,3,3] init=uniform(0.1)
  fc = parameter f32[3,192] init=uniform(0.1)
  scale = parameter f32[192] init=constant(1)
  shift = parameter f32[192]
  a = conv(image, kernel, padding=[1,1,1,1])
  b = relu(a)
  c = conv(b, deep, padding=[1,1,1,1])
  rows = reshape(c, dims=[0,192])
  norm, mean, rstd = layer_norm(rows, scale, shift)
  g = gelu(norm)
  logits = matmul(g, fc, transpose_b=1)
  losses = softmax_cross_entropy(logits, label)
  loss = reduce_mean(losses)
  output logits
  output loss
)";

// Trains a classifier of 12 columns, with and without accumulation; the tiny network without a
// text.
void ExpectNoAllocation(Backend& backend, const std::string& graph = "") {
  const TempFolder folder;
  std::ofstream csv(folder.File("data.csv"));
  for (int sample = 0; sample < 1600; ++sample) {
    for (int i = 0; i < 12; ++i) csv << (sample * (i + 3)) % 17 << ',';
    csv << sample % 3 << '\n';
  }
  csv.close();
  for (int64_t accumulate : {1, 2}) {
    BusyDevice device;
    Machine machine = TestMachine().get();
    machine.backend = &backend;
    machine.counters = &device;
    TrainRequest request = TinyRequest(folder.File("run" + std::to_string(accumulate)));
    if (!graph.empty()) request.options.model = folder.Write("net.ridge", graph);
    request.options.data = "csv:" + folder.File("data.csv");
    request.options.accumulate = accumulate;
    request.options.clip_norm = 1;
    request.options.checkpoint_every = 1000;
    Counter counter;
    const Result<TrainOutcome> outcome = Train(request, machine, counter);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    EXPECT_GT(outcome->step, 90);
    EXPECT_EQ(counter.in_steps, 0) << "accumulate " << accumulate << " " << graph;
  }
}

// Ranks are in one process and up to a step apart, so the reports and the end are left out with the
// steps beside them.
struct RankCounter : TrainObserver {
  void OnStep(const StepReport& report) override {
    const int64_t now = allocations.load();
    const int64_t since = report.step % 50;
    if (report.step > 10 && since > 3 && since < 47) in_steps += now - last;
    last = allocations.load();
  }
  int64_t last = 0;
  int64_t in_steps = 0;
};

TEST(AllocationTest, AnUpdateOfSeveralRanksAllocatesNothing) {
  const TempFolder folder;
  RankCounter counter;
  RunRanks(3, [&](Communicator& communicator) {
    const auto cpu = MakeCpuBackend(/*threads=*/1, ConvKernels::kDirect);
    ASSERT_TRUE(cpu.ok()) << cpu.status().message();
    Machine machine = TestMachine().get();
    machine.backend = cpu->get();
    machine.Join(communicator);
    TrainRequest request = TinyRequest(folder.File("run"));
    request.options.data = "synthetic";
    request.options.slices = "8";
    request.options.steps = 150;
    request.options.checkpoint_every = 1000;
    const Result<TrainOutcome> outcome = Train(request, machine, counter);
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  });
  EXPECT_EQ(counter.in_steps, 0);
}

TEST(AllocationTest, AnUpdateAllocatesNothingOutsideKernels) {
  UncountedBackend backend;
  ExpectNoAllocation(backend);
}

TEST(AllocationTest, KernelsOfTheCpuAllocateNothing) {
  const Result<std::unique_ptr<Backend>> cpu = MakeCpuBackend(/*threads=*/1, ConvKernels::kDirect);
  ASSERT_TRUE(cpu.ok()) << cpu.status().message();
  ExpectNoAllocation(**cpu);
  ExpectNoAllocation(**cpu, kConvolutions);
}

}  // namespace
}  // namespace ridge
