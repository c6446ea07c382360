// `ridge bench memory`: patterns over the memory of a device, their speed and their errors.
#include "ridge/measure/bench_memory.h"

#include <fmt/format.h>

#include "ridge/backend/cpu/cpu_backend.h"
#include "ridge/backend/cuda/pattern_kernels.h"
#include "ridge/cli/cuda_machine.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/train_flags.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/threads.h"
#include "ridge/core/units.h"
#include "ridge/report/table.h"

namespace ridge::cli {
namespace {

struct BenchMemoryVerb {
  TrainFlags place;  // of these: device, threads
  std::optional<int64_t> bytes, rounds;
  OutputFlags output;
  bool json = false;
};

// "ECC corrected 0 errors and could not correct 0", or that it is not known.
std::string EccText(const DeviceCounters& counters) {
  if (!counters.corrected_errors || !counters.uncorrected_errors)
    return "the device does not tell what ECC found";
  return fmt::format("ECC corrected {} and could not correct {:.0f}",
                     FormatCountOf(static_cast<int64_t>(*counters.corrected_errors), "error"),
                     *counters.uncorrected_errors);
}

std::string MemoryReport(const std::string& device, const BenchMemoryResult& result,
                         const Terminal& terminal) {
  Table table({{"pattern"},
               {"write", Align::kRight},
               {"verify", Align::kRight},
               {"wrong words", Align::kRight}});
  for (const PatternResult& of : result.patterns) {
    table.AddRow({MemoryPatternName(of.pattern), FormatRate(result.bytes_per_s(of.write_s), "B"),
                  FormatRate(result.bytes_per_s(of.verify_s), "B"), FormatInteger(of.wrong_words)});
  }
  return fmt::format("{}, {}, {}\n\n", device, FormatBytes(result.bytes),
                     FormatCountOf(result.rounds, "round")) +
         table.ToText(terminal) + "\n" + EccText(result.counters) + "\n";
}

// The memory is touched as a whole: what is not there must be known before.
Status CheckFree(const std::string& device, int64_t bytes, int64_t free) {
  if (bytes <= free) return Status();
  return Status(ErrorCode::kOutOfMemory,
                fmt::format("{}: --size is {}, {} are free. hint: a smaller --size", device,
                            FormatBytes(bytes), FormatBytes(free)));
}

Result<BenchMemoryResult> BenchHost(const BenchMemoryVerb& verb,
                                    const BenchMemoryRequest& request) {
  const int64_t asked = verb.place.options.threads;
  const int64_t threads = asked > 0 ? asked : AvailableThreads();
  RIDGE_RETURN_IF_ERROR(CheckThreadLimit("--threads", threads));
  RIDGE_RETURN_IF_ERROR(CheckFree("cpu", request.bytes, AvailableMemoryBytes()));
  RIDGE_ASSIGN_OR_RETURN(const std::unique_ptr<Backend> backend,
                         MakeCpuBackend(static_cast<int>(threads)));
  Device& device = backend->device();
  return BenchMemory(
      device,
      [&](const PatternCall& call) {
        return MakeHostPatternKernels(device, backend->threads(), call);
      },
      request, /*counters=*/nullptr);
}

Result<BenchMemoryResult> BenchGpu(const std::string& name, int ordinal,
                                   const BenchMemoryRequest& request, bool quiet) {
  RIDGE_ASSIGN_OR_RETURN(OpenedGpu gpu, OpenGpu(ordinal));
  RIDGE_ASSIGN_OR_RETURN(const int64_t free, gpu.device->FreeBytes());
  RIDGE_RETURN_IF_ERROR(CheckFree(name, request.bytes, free));
  const std::unique_ptr<CounterSource> counters =
      OpenCounters(*gpu.device, ordinal, SayUnless(quiet));
  return BenchMemory(
      *gpu.device,
      [&](const PatternCall& call) {
        return cuda::MakeCudaPatternKernels(*gpu.device, gpu.compiler, call);
      },
      request, counters.get());
}

Result<int> RunBenchMemory(const BenchMemoryVerb& verb) {
  RIDGE_ASSIGN_OR_RETURN(const Terminal terminal, TerminalFor(stdout, verb.output));
  const std::string& device = verb.place.options.device;
  RIDGE_ASSIGN_OR_RETURN(const std::optional<int> gpu, GpuOrdinal("--device", device));
  BenchMemoryRequest request;
  request.bytes = verb.bytes.value_or(request.bytes);
  if (request.bytes == 0) return InvalidArgument("--size is 0. hint: --size 1GiB");
  request.rounds = verb.rounds.value_or(request.rounds);
  const std::string name = gpu ? fmt::format("cuda:{}", *gpu) : device;
  RIDGE_ASSIGN_OR_RETURN(
      const BenchMemoryResult result,
      gpu ? BenchGpu(name, *gpu, request, verb.output.quiet) : BenchHost(verb, request));
  PrintData(verb.json ? BenchMemoryToJson(name, result) + "\n"
                      : MemoryReport(name, result, terminal));
  RIDGE_RETURN_IF_ERROR(CheckMemory(name, result));
  return kExitOk;
}

}  // namespace

VerbBody AddBenchMemory(CLI::App& app) {
  auto verb = std::make_shared<BenchMemoryVerb>();
  AddOption(app, verb->place, "device", "Whose memory (cpu)");
  AddOption(app, verb->place, "threads");
  AddSize(app, "--size", Into(verb->bytes), "Bytes that are written and verified (1GiB)");
  AddInteger(app, "--rounds", verb->rounds, {.minimum = 1, .maximum = UINT32_MAX}, "N",
             "Times that each pattern is written and verified (1)");
  AddSwitch(app, "--json", verb->json, "Print JSON")->group(kOutputGroup);
  AddColorFlag(app, verb->output);
  AddQuietFlags(app, verb->output);
  return [verb] { return RunBenchMemory(*verb); };
}

}  // namespace ridge::cli
