// libcudnn.so.9 in the fakes' folder: it opens the file RIDGE_FAKE_CUDNN_PART as a part, whose
// check of versions gives RIDGE_FAKE_CUDNN_PART_FAILS.
#include <dlfcn.h>

#include <cstdlib>

extern "C" int cudnnOpsVersionCheck() {
  if (const char* part = std::getenv("RIDGE_FAKE_CUDNN_PART"))
    (void)::dlopen(part, RTLD_NOW | RTLD_LOCAL);
  const char* const fails = std::getenv("RIDGE_FAKE_CUDNN_PART_FAILS");
  return fails == nullptr ? 0 : std::atoi(fails);
}
