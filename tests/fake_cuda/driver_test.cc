// Loading: where the driver is found, and the one sentence for each way in which it is none.
#include "ridge/backend/cuda/driver.h"

#include "ridge/core/test_folder.h"
#include "tests/fake_cuda/test_driver.h"

namespace ridge::fake_cuda {
namespace {

using cuda::FoundBy;
using cuda::LoadDriver;

const std::string kFolder = RIDGE_FAKE_CUDA_FOLDER;
const std::string kFile = kFolder + "/libcuda.so.1";

std::string Refusal(const Result<cuda::Driver>& driver) {
  EXPECT_EQ(driver.status().code(), ErrorCode::kDevice);
  return driver.status().message();
}

TEST(CudaDriver, IsFoundByItsFolderOrItsFile) {
  for (const std::string& place : {kFolder, kFile}) {
    const Result<cuda::Driver> driver = LoadDriver({.places = place});
    ASSERT_TRUE(driver.ok()) << driver.status().message();
    EXPECT_EQ(driver->path, kFile);
    EXPECT_EQ(driver->found_by, FoundBy::kVariable);
    EXPECT_EQ(driver->version, 13000);
  }
}

TEST(CudaDriver, ThatIsInTheProcessIsTakenBeforeTheSystems) {
  ASSERT_TRUE(LoadFake().ok());
  const Result<cuda::Driver> driver = LoadDriver({});
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  EXPECT_EQ(driver->path, kFile);
  EXPECT_EQ(driver->found_by, FoundBy::kProcess);
}

TEST(CudaDriver, ThatIsNotThereIsASentence) {
  EXPECT_EQ(Refusal(LoadDriver({.places = "", .soname = "libcuda_of_nobody.so.1"})),
            "no NVIDIA driver: libcuda_of_nobody.so.1 is not found; a GPU's plan can be made here, "
            "not run. hint: install NVIDIA's driver 580 or newer");
  const TempFolder folder;
  EXPECT_EQ(Refusal(LoadDriver({.places = folder.path(), .soname = "libcuda_of_nobody.so.1"})),
            "no NVIDIA driver: neither RIDGE_CUDA_PATH ('" + folder.path() +
                "') nor the system has libcuda_of_nobody.so.1; a GPU's plan can be made here, not "
                "run. hint: install NVIDIA's driver 580 or newer");
  const std::string absent = folder.File("absent");
  EXPECT_EQ(Refusal(LoadDriver({.places = absent + ":" + kFolder})),
            "RIDGE_CUDA_PATH is '" + absent + ":" + kFolder + "': " + absent +
                ": cannot open shared object file: No such file or directory. hint: unset "
                "RIDGE_CUDA_PATH, and the system's driver is taken");
}

TEST(CudaDriver, FoldersOfOtherLibrariesArePassedOver) {
  ASSERT_TRUE(LoadFake().ok());
  const TempFolder folder;
  (void)folder.Write("libcudnn.so.9", "text");
  const Result<cuda::Driver> of_process = LoadDriver({.places = folder.path()});
  ASSERT_TRUE(of_process.ok()) << of_process.status().message();
  EXPECT_EQ(of_process->path, kFile);
  EXPECT_EQ(of_process->found_by, FoundBy::kProcess);
  const Result<cuda::Driver> of_list = LoadDriver({.places = folder.path() + "::" + kFolder});
  ASSERT_TRUE(of_list.ok()) << of_list.status().message();
  EXPECT_EQ(of_list->path, kFile);
  EXPECT_EQ(of_list->found_by, FoundBy::kVariable);
}

TEST(CudaDriver, ThatIsNoLibraryOfADriverIsRefused) {
  const TempFolder folder;
  const std::string text = folder.Write("libcuda.so.1", "text");
  EXPECT_EQ(Refusal(LoadDriver({.places = text})),
            "RIDGE_CUDA_PATH is '" + text + "': " + text +
                ": file too short. hint: unset RIDGE_CUDA_PATH, and the system's driver is taken");
  EXPECT_EQ(Refusal(LoadDriver({.places = "", .soname = "libc.so.6"})),
            "libc.so.6 has no cuDriverGetVersion: it is no CUDA driver. hint: install NVIDIA's "
            "driver 580 or newer");
}

TEST(CudaDriver, OfAnOlderCudaIsRefusedByVersion) {
  const Variables old(Settings{{"RIDGE_FAKE_CUDA_VERSION", "12040"}});
  EXPECT_EQ(Refusal(LoadFake()), kFile +
                                     " is of a driver for CUDA 12.4; ridge needs CUDA 13.0, which "
                                     "driver 580 has. hint: install NVIDIA's driver 580 or newer");
}

TEST(CudaDriver, ANewerCudaIsTaken) {
  const Variables newer(Settings{{"RIDGE_FAKE_CUDA_VERSION", "14020"}});
  const Result<cuda::Driver> driver = LoadFake();
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  EXPECT_EQ(cuda::CudaVersionText(driver->version), "14.2");
}

TEST(CudaDriver, TheStubOfAToolkitIsNamed) {
  const std::string expected = kFile +
                               " is the stub of a CUDA toolkit, for linking programs; it drives no "
                               "GPU. hint: unset RIDGE_CUDA_PATH";
  {
    const Variables stub(Settings{{"RIDGE_FAKE_CUDA_FAIL", "cuDriverGetVersion:1:34"}});
    EXPECT_EQ(Refusal(LoadFake()), expected);
    EXPECT_EQ(Refusal(LoadDriver({})),  // it is in the process
              kFile +
                  " is the stub of a CUDA toolkit, for linking programs; it drives no GPU. hint: "
                  "take " +
                  kFolder + " out of LD_LIBRARY_PATH");
  }
  const Variables stub(Settings{{"RIDGE_FAKE_CUDA_FAIL", "cuInit:1:34"}});
  const Result<cuda::Driver> driver = LoadFake();
  ASSERT_TRUE(driver.ok()) << driver.status().message();
  EXPECT_EQ(driver->Initialize().message(), expected);
}

TEST(CudaDriver, WithoutAFunctionIsRefusedByTheFunctionsName) {
  const std::string partial = kFolder + "/libridge_partial_cuda.so";
  EXPECT_EQ(
      Refusal(LoadDriver({.places = partial})),
      partial + " says CUDA 13.0 and has no cuGetErrorName. hint: install NVIDIA's driver again");
}

TEST(CudaDriver, WithoutAGpuSaysWhatHidesThem) {
  const Variables none(Settings{{"RIDGE_FAKE_CUDA_DEVICES", "0"}});
  const Result<cuda::Driver> driver = LoadFake();
  ASSERT_TRUE(driver.ok());
  EXPECT_EQ(driver->Initialize().message(),
            "the NVIDIA driver shows no GPU. hint: nvidia-smi -L lists those that it knows");
  const Variables hidden(Settings{{"CUDA_VISIBLE_DEVICES", "-1"}});
  EXPECT_EQ(driver->Initialize().message(),
            "the NVIDIA driver shows no GPU: CUDA_VISIBLE_DEVICES is '-1'. hint: unset "
            "CUDA_VISIBLE_DEVICES");
}

TEST(CudaDriver, ErrorsHaveTheFunctionTheNameAndTheNumber) {
  const Result<cuda::Driver> driver = LoadFake();
  ASSERT_TRUE(driver.ok());
  EXPECT_TRUE(driver->Check(cuda::DriverCode::kSuccess, "cuInit").ok());
  const Status memory = driver->Check(cuda::DriverCode::kOutOfMemory, "cuMemCreate");
  EXPECT_EQ(memory.code(), ErrorCode::kDeviceMemory);
  EXPECT_EQ(memory.message(),
            "cuMemCreate failed: CUDA_ERROR_OUT_OF_MEMORY (2). hint: end what "
            "else uses it, which nvidia-smi lists");
  const Status mixed = driver->Check(cuda::DriverCode::kDriverMismatch, "cuInit");
  EXPECT_EQ(mixed.code(), ErrorCode::kDevice);
  EXPECT_EQ(
      mixed.message(),
      "cuInit failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803). hint: restart the machine: the "
      "kernel has another version of the driver than libcuda");
  EXPECT_EQ(driver->Check(static_cast<cuda::DriverCode>(12345), "cuInit").message(),
            "cuInit failed: an error without a name (12345)");
}

}  // namespace
}  // namespace ridge::fake_cuda
