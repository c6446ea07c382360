// CUDA's backend on a driver and a compiler that run on the host: text, cubin, cache, module,
// launch.
#include <filesystem>
#include <fstream>

#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/core/test_folder.h"
#include "tests/fake_cuda/test_driver.h"
#include "tests/ops/case_file.h"
#include "tests/ops/check_backend.h"

namespace ridge::fake_cuda {
namespace {

const Settings kQuick = {{"RIDGE_FAKE_CUDA_DELAY_US", "0"}};
const cuda::LibrarySearch kFakeToolkit = {{RIDGE_FAKE_CUDA_FOLDER}, {}};

constexpr const char* kDoubles = R"(
RIDGE_KERNEL void doubles(const float* x, float* y) {
  for (i64 i = Thread(); i < 5; i += Threads()) y[i] = 2 * x[i];
}
)";

cuda::KernelCompiler Compiler(const cuda::CudaDevice& device, const std::string& folder) {
  Result<cuda::KernelCompiler> compiler =
      cuda::KernelCompiler::Open(device.gpu(), folder, kFakeToolkit);
  EXPECT_TRUE(compiler.ok()) << compiler.status().message();
  return *std::move(compiler);
}

TEST(CudaBackend, AgreesWithTheReference) {
  const TempFolder folder;
  const FakeGpu gpu(kQuick);
  const auto backend =
      cuda::MakeCudaBackend(*gpu.device, Compiler(*gpu.device, folder.File("cubin")));
  constexpr int kMostCases = 3;  // each is compiled
  for (const char* name : {"add", "gelu", "softmax"}) {
    const Result<CaseFile> file =
        ReadCaseFile(std::string(std::getenv("RIDGE_SOURCE_DIR")) + "/tests/ops/" + name + ".case");
    ASSERT_TRUE(file.ok()) << file.status().message();
    int cases = 0;
    for (const OpCase& op_case : file->cases) {
      if (op_case.kind == OpCase::Kind::kError || ++cases > kMostCases) continue;
      int fast = 0;
      EXPECT_EQ(CheckBackend(*backend, *FindOp(name), op_case, kRowMajor, 2e-5, fast), "")
          << name << ":" << op_case.line;
      EXPECT_EQ(fast, 1);
    }
  }
}

TEST(CudaBackend, NodesOfEqualTextShareAModule) {
  const TempFolder folder;
  const FakeGpu gpu(kQuick);
  const auto backend =
      cuda::MakeCudaBackend(*gpu.device, Compiler(*gpu.device, folder.File("cubin")));
  OpCall call;
  call.where = "relu 'y'";
  call.inputs = call.outputs = {{DType::kF32, {8}}};
  const OpDef& op = *FindOp("relu");
  const KernelChoice choice = backend->Candidates(op, call, {}).choices.at(0);
  const auto first = backend->Create(op, call, choice), second = backend->Create(op, call, choice);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status().message();
  EXPECT_EQ(gpu.hooks.calls("cuModuleLoadData"), 1);
}

TEST(CudaBackend, NamesWhatHasNoKernel) {
  const TempFolder folder;
  const FakeGpu gpu(kQuick);
  const auto backend =
      cuda::MakeCudaBackend(*gpu.device, Compiler(*gpu.device, folder.File("cubin")));
  OpCall call;
  call.where = "equal 'y'";
  call.inputs = {{DType::kF4E2M1, {8}}, {DType::kF4E2M1, {8}}};
  call.outputs = {{DType::kBool, {8}}};
  const KernelCandidates candidates = backend->Candidates(*FindOp("equal"), call, {});
  EXPECT_TRUE(candidates.choices.empty());
  ASSERT_EQ(candidates.refusals.size(), 1u);
  EXPECT_EQ(candidates.refusals[0].reason, "dtype");
}

TEST(KernelCompiler, FindsInTheCacheWhatItCompiled) {
  const TempFolder folder;
  const FakeGpu gpu(kQuick);
  cuda::KernelCompiler first = Compiler(*gpu.device, folder.File("cubin"));
  const Result<std::string> compiled = first.Compile(kDoubles);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  cuda::KernelCompiler second = Compiler(*gpu.device, folder.File("cubin"));
  const Result<std::string> found = second.Compile(kDoubles);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(*found == *compiled);
  EXPECT_EQ(first.compiled(), 1);
  EXPECT_EQ(second.compiled(), 0);
  EXPECT_EQ(second.found(), 1);
}

TEST(KernelCompiler, CompilesAgainWhatIsDamaged) {
  const TempFolder folder;
  const FakeGpu gpu(kQuick);
  const std::string cache = folder.File("cubin");
  const Result<std::string> compiled = Compiler(*gpu.device, cache).Compile(kDoubles);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const std::filesystem::path file = std::filesystem::directory_iterator(cache)->path();
  for (const auto& damage : {std::string("short"), std::string(*compiled).substr(1)}) {
    std::ofstream(file, std::ios::binary) << damage;
    cuda::KernelCompiler again = Compiler(*gpu.device, cache);
    const Result<std::string> code = again.Compile(kDoubles);
    ASSERT_TRUE(code.ok());
    EXPECT_EQ(again.compiled(), 1);
    EXPECT_TRUE(*Compiler(*gpu.device, cache).Compile(kDoubles) == *code);  // it is kept
  }
}

TEST(KernelCompiler, ACacheThatCannotBeWrittenIsNoError) {
  const FakeGpu gpu(kQuick);
  cuda::KernelCompiler compiler = Compiler(*gpu.device, "/proc/no/such/folder");
  EXPECT_TRUE(compiler.Compile(kDoubles).ok());
}

TEST(KernelCompiler, ATextThatIsWrongIsAnErrorWithTheCompilersWords) {
  const TempFolder folder;
  const FakeGpu gpu(kQuick);
  const Status status = Compiler(*gpu.device, folder.File("cubin"))
                            .Compile("RIDGE_KERNEL void f(float* x) { y; }")
                            .status();
  EXPECT_EQ(status.code(), ErrorCode::kInternal);
  EXPECT_THAT(status.message(),
              testing::AnyOf(testing::HasSubstr("was not declared in this scope"),
                             testing::HasSubstr("use of undeclared identifier 'y'")));
}

TEST(KernelCompiler, AnArchitectureThatNvrtcDoesNotKnowIsNamed) {
  const TempFolder folder;
  const FakeGpu gpu(
      Settings{{"RIDGE_FAKE_CUDA_DELAY_US", "0"}, {"RIDGE_FAKE_NVRTC_ARCHITECTURES", "sm_80"}});
  const Status status = Compiler(*gpu.device, folder.File("cubin")).Compile(kDoubles).status();
  EXPECT_EQ(status.code(), ErrorCode::kDevice);
  EXPECT_EQ(status.message(),
            "NVRTC 13.0 (" RIDGE_FAKE_CUDA_FOLDER
            "/libnvrtc.so.13) does not know the architecture sm_90. hint: pip install --upgrade "
            "nvidia-cuda-nvrtc");
}

TEST(LibrarySearch, ALibraryThatIsNowhereIsNamedWithItsWheel) {
  const Status status = cuda::OpenToolkitLibrary(cuda::SearchForToolkit(), "NVRTC",
                                                 "libnvrtc.so.999", "nvidia-cuda-nvrtc")
                            .status();
  EXPECT_EQ(status.code(), ErrorCode::kDevice);
  EXPECT_EQ(status.message(),
            "no NVRTC: libnvrtc.so.999 is not found. hint: pip install nvidia-cuda-nvrtc, or set "
            "RIDGE_CUDA_PATH to its folder");
}

TEST(LibrarySearch, AFileThatDoesNotLoadIsNamedWithTheLoadersWords) {
  const TempFolder first, second;
  const std::string broken = first.Write("libbroken.so.13", "text");
  const cuda::LibrarySearch places = {{first.path(), second.path()}};
  const auto open = [&] {
    return cuda::OpenToolkitLibrary(places, "NVRTC", "libbroken.so.13", "nvidia-cuda-nvrtc");
  };
  const Status status = open().status();
  EXPECT_EQ(status.code(), ErrorCode::kDevice);
  EXPECT_EQ(status.message(),
            "no NVRTC: " + broken +
                " does not load: file too short. hint: pip install --force-reinstall "
                "nvidia-cuda-nvrtc, or set RIDGE_CUDA_PATH to its folder");
  EXPECT_EQ(cuda::FindLibrary(places, "libbroken.so.13").status().message(),
            broken + " does not load: file too short");
  std::filesystem::copy(RIDGE_FAKE_CUDA_FOLDER "/libridge_partial_cuda.so",
                        second.File("libbroken.so.13"));
  const Result<cuda::OpenLibrary> later = open();
  ASSERT_TRUE(later.ok()) << later.status().message();
  EXPECT_EQ(later->path, second.File("libbroken.so.13"));
}

// A library that the loader knows by no name of NVIDIA's.
constexpr char kOther[] = RIDGE_FAKE_CUDA_FOLDER "/libridge_partial_cuda.so";

// Where SearchForToolkit finds the library, as a path without dots.
std::filesystem::path FoundAt(const std::string& soname) {
  const auto library = cuda::FindLibrary(cuda::SearchForToolkit(), soname);
  EXPECT_TRUE(library.ok()) << library.status().message();
  return library.ok() ? std::filesystem::path(library->path).lexically_normal() : "";
}

// A virtual environment whose wheel has a library of that name.
struct Wheel {
  explicit Wheel(const std::string& name) : soname("lib" + name + "_of_a_wheel.so.13") {
    const std::string lib = folder.File("lib/python3.11/site-packages/nvidia/cu13/lib");
    std::filesystem::create_directories(lib);
    path = std::filesystem::path(lib + "/" + soname).lexically_normal();
    std::filesystem::copy(kOther, path);
  }
  const TempFolder folder;
  const std::string soname;
  std::filesystem::path path;
};

TEST(LibrarySearch, TheWheelsOfTheActivePythonComeBeforeTheSystem) {
  const Wheel wheel("first");
  const Variables variables(Settings{{"VIRTUAL_ENV", wheel.folder.File("")}});
  EXPECT_EQ(FoundAt(wheel.soname), wheel.path);
}

TEST(LibrarySearch, CondaHasWheelsTooBehindThoseOfAVirtualEnvironment) {
  const Wheel wheel("conda"), other("conda");
  const Settings conda = {{"CONDA_PREFIX", wheel.folder.path()}};
  {
    const Variables variables(conda);
    EXPECT_EQ(FoundAt(wheel.soname), wheel.path);
  }
  Settings both = conda;
  both["VIRTUAL_ENV"] = other.folder.path();
  const Variables variables(both);
  EXPECT_EQ(FoundAt(wheel.soname), other.path);
}

// As the tarball has it: the library beside the program, or in lib/ridge beside its folder.
TEST(LibrarySearch, TheProgramsFolderComesBeforeTheWheels) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const Wheel wheel("program");
  const std::filesystem::path beside = program.parent_path() / wheel.soname;
  std::filesystem::copy(kOther, beside, std::filesystem::copy_options::overwrite_existing);
  const Variables variables(Settings{{"VIRTUAL_ENV", wheel.folder.path()}});
  const std::vector<std::string> middle = cuda::SearchForToolkit().middle;
  EXPECT_EQ(FoundAt(wheel.soname), beside);
  std::filesystem::remove(beside);
  ASSERT_EQ(middle.size(), 3U);
  EXPECT_EQ(middle[1], program.parent_path().string() + "/../lib/ridge");
  EXPECT_EQ(middle[2] + "/" + wheel.soname, wheel.path);
}

TEST(LibrarySearch, WhatTheProcessHasOpenComesBeforeTheWheels) {
  ASSERT_TRUE(cuda::Nvrtc::Open(kFakeToolkit).ok());
  const Wheel wheel("second");
  std::filesystem::copy(kOther, wheel.path.parent_path() / "libnvrtc.so.13");
  const Variables variables(Settings{{"VIRTUAL_ENV", wheel.folder.File("")}});
  EXPECT_EQ(FoundAt("libnvrtc.so.13"), RIDGE_FAKE_CUDA_FOLDER "/libnvrtc.so.13");
}

TEST(LibrarySearch, ThePathOfTheUserComesBeforeWhatTheProcessHasOpen) {
  ASSERT_TRUE(cuda::Nvrtc::Open(kFakeToolkit).ok());
  const TempFolder folder;
  std::filesystem::copy(kOther, folder.File("libnvrtc.so.13"));
  const Variables variables(Settings{{"RIDGE_CUDA_PATH", folder.path()}});
  EXPECT_EQ(FoundAt("libnvrtc.so.13"), folder.File("libnvrtc.so.13"));
}

TEST(LibrarySearch, ThePathOfTheUserIsAList) {
  const TempFolder first, second;
  std::filesystem::copy(kOther, second.File("lib_of_a_list.so.13"));
  const Variables variables(Settings{{"RIDGE_CUDA_PATH", first.path() + ":" + second.path()}});
  EXPECT_EQ(FoundAt("lib_of_a_list.so.13"), second.File("lib_of_a_list.so.13"));
}

}  // namespace
}  // namespace ridge::fake_cuda
