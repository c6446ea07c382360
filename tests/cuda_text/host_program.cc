#include "tests/cuda_text/host_program.h"

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>

namespace ridge::cuda_text {
namespace {

constexpr const char* kBegin = R"(extern "C" const RidgeHostBlock* ridge_block = nullptr;
)";

std::vector<std::string> FunctionsOf(const std::string& source) {
  static const std::regex pattern(R"(RIDGE_KERNEL (?:__launch_bounds__\(.*?\) )?void (\w+)\()");
  std::vector<std::string> names;
  for (auto at = std::sregex_iterator(source.begin(), source.end(), pattern);
       at != std::sregex_iterator(); ++at)
    names.push_back((*at)[1]);
  return names;
}

bool HasBarriers(const std::string& source) {
  for (const char* name : {"__sync", "__shfl", "Block", "Warp"}) {
    for (size_t at = source.find(name); at != std::string::npos; at = source.find(name, at + 1)) {
      if (at == 0 || std::isalnum(static_cast<unsigned char>(source[at - 1])) == 0) return true;
    }
  }
  return false;
}

// With its shared memory in a section of its own.
std::string InNamespace(const std::string& k, const std::string& source) {
  return "#undef __shared__\n#define __shared__ static __attribute__((section(\"shared_" + k +
         "\")))\nextern char __start_shared_" + k +
         "[] __attribute__((weak, visibility(\"hidden\")));\nextern char __stop_shared_" + k +
         "[] __attribute__((weak, visibility(\"hidden\")));\nnamespace n" + k +
         " {\n#line 1 \"source_" + k + "\"\n" + source + "\n}\n";
}

std::string RowsOf(const std::string& k, const std::string& source) {
  const std::string shared = "__start_shared_" + k + ", __stop_shared_" + k;
  const std::string barriers = HasBarriers(source) ? "true" : "false";
  std::string rows;
  for (const std::string& name : FunctionsOf(source)) {
    const std::string function = "n" + k + "::" + name;
    rows += "  {\"" + k + ":" + name + "\", [](void* const* a) { CallKernel(" + function +
            ", a); }, ParametersOf(" + function + "), " + barriers + ", " + shared + "},\n";
  }
  return rows;
}

std::string CompilerCommand(const std::string& in, const std::string& out) {
  return RIDGE_HOST_COMPILER " -shared -o '" + out + "' '" + in + "' 2>'" + out + ".log'";
}

std::string Content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string CompileForHost(std::string_view prelude, const std::vector<std::string>& sources,
                           const std::string& out) {
  std::string text = kBegin, rows;
  text += prelude;
  for (size_t k = 0; k < sources.size(); ++k) {
    text += InNamespace(std::to_string(k), sources[k]);
    rows += RowsOf(std::to_string(k), sources[k]);
  }
  text += "extern \"C\" const RidgeHostKernel ridge_kernels[] = {\n" + rows + "  {}};\n";
  const std::string in = out + ".cc";
  std::ofstream(in) << text;
  if (std::system(CompilerCommand(in, out).c_str()) == 0) return "";
  return "the host's compiler: " + Content(out + ".log");
}

}  // namespace ridge::cuda_text
