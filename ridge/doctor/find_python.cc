// Python's packages: folders NAME-VERSION.dist-info.  The interpreter is not started: an import of
// a framework takes seconds and may be what is broken.
#include <algorithm>
#include <cctype>

#include "ridge/core/split.h"
#include "ridge/doctor/compat.h"
#include "ridge/doctor/find_probe.h"

namespace ridge {
namespace {

using probing::Exists;
using probing::Names;
using probing::Text;
using probing::Variable;

// "python3.11" -> "3.11"
std::string VersionOfFolder(const std::string& folder) {
  return folder.substr(folder.rfind("/python") + 7);
}

// The folders "lib/python3.X" below a prefix, the newest version first.
std::vector<std::string> PythonFolders(const ProbePlace& place, const std::string& prefix) {
  std::vector<std::string> folders = Names(place, prefix + "/lib", "python3.");
  std::stable_sort(folders.begin(), folders.end(), [](const auto& a, const auto& b) {
    return Version(VersionOfFolder(a)) > Version(VersionOfFolder(b));
  });
  return folders;
}

// An environment's prefix, else that of the first python3 of PATH.
std::string PythonPrefix(const ProbePlace& place) {
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string prefix = Variable(place, name);
    if (!prefix.empty() && !PythonFolders(place, prefix).empty()) return prefix;
  }
  const std::string search_path = Variable(place, "PATH");
  for (const std::string_view folder : SplitAt(search_path, ':')) {
    if (!folder.ends_with("/bin")) continue;
    const std::string prefix(folder.substr(0, folder.size() - 4));
    if (Exists(place, prefix + "/bin/python3") && !PythonFolders(place, prefix).empty())
      return prefix;
  }
  return "/usr";
}

// Where an interpreter of `version` below `prefix` finds packages, in its order.
std::vector<std::string> PackageFolders(const ProbePlace& place, const std::string& prefix,
                                        const std::string& version) {
  const std::string python = "/lib/python" + version;
  std::vector<std::string> folders = {prefix + python + "/site-packages"};
  if (prefix != "/usr") return folders;
  folders.insert(folders.begin(), Variable(place, "HOME") + "/.local" + python + "/site-packages");
  folders.push_back("/usr/local" + python + "/dist-packages");
  folders.push_back("/usr/lib/python3/dist-packages");
  return folders;
}

// As PyPI compares names: small letters, "-" for "_" and ".".
std::string PackageName(std::string_view text) {
  std::string name;
  for (const char c : text) name += c == '_' || c == '.' ? '-' : static_cast<char>(std::tolower(c));
  return name;
}

bool IsOfInterest(const std::string& name) {
  static constexpr const char* kNames[] = {"torch",       "jax",   "jaxlib",
                                           "onnxruntime", "numpy", "intel-tensorflow"};
  static constexpr const char* kPrefixes[] = {
      "tensorflow", "jax-", "onnxruntime-", "nvidia-cudnn", "nvidia-cuda-runtime", "nvidia-nccl"};
  static constexpr const char* kHelpers[] = {
      "tensorflow-estimator", "tensorflow-hub",         "tensorflow-datasets",
      "tensorflow-metadata",  "tensorflow-probability", "tensorflow-io-gcs-filesystem"};
  const auto is = [&](const char* known) { return name == known; };
  if (std::any_of(std::begin(kHelpers), std::end(kHelpers), is)) return false;
  return std::any_of(std::begin(kNames), std::end(kNames), is) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](const char* prefix) { return name.starts_with(prefix); });
}

// The text behind "NAME = '" or "NAME: Optional[str] = '" at the start of a line, to the quote.
std::string AssignedText(const std::string& text, const std::string& name) {
  for (const std::string_view line : SplitAt(text, '\n')) {
    if (!line.starts_with(name)) continue;
    const size_t open = line.find_first_of("'\"", line.find('='));
    if (open == std::string_view::npos) return "";
    return std::string(line.substr(open + 1, line.find(line[open], open + 1) - open - 1));
  }
  return "";
}

// torch says in a file what it was built with.
void AddBuild(const ProbePlace& place, const std::string& folder, Probe::Package& package) {
  if (package.name != "torch") return;
  const std::string text = Text(place, folder + "/torch/version.py");
  package.cuda = AssignedText(text, "cuda");
  package.rocm = AssignedText(text, "hip");
  if (const std::string version = AssignedText(text, "__version__"); !version.empty())
    package.version = version;
}

void AddPackages(const ProbePlace& place, const std::string& folder, Probe::Python& python) {
  constexpr size_t kEnding = sizeof(".dist-info") - 1;
  for (const std::string& path : Names(place, folder, "", ".dist-info")) {
    const std::string stem =
        path.substr(folder.size() + 1, path.size() - folder.size() - 1 - kEnding);
    const size_t dash = stem.find('-');
    if (dash == std::string::npos) continue;
    Probe::Package package = {PackageName(std::string_view(stem).substr(0, dash)),
                              stem.substr(dash + 1), "", ""};
    const bool known =
        std::any_of(python.packages.begin(), python.packages.end(),
                    [&](const Probe::Package& other) { return other.name == package.name; });
    if (known || !IsOfInterest(package.name)) continue;
    AddBuild(place, folder, package);
    python.packages.push_back(std::move(package));
  }
}

}  // namespace

Probe::Python FindPython(const ProbePlace& place) {
  Probe::Python python;
  const std::string prefix = PythonPrefix(place);
  const std::vector<std::string> found = PythonFolders(place, prefix);
  if (found.empty()) return python;
  python.version = VersionOfFolder(found.front());
  python.folder = prefix;
  for (const std::string& folder : PackageFolders(place, prefix, python.version))
    AddPackages(place, folder, python);
  std::sort(python.packages.begin(), python.packages.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return python;
}

}  // namespace ridge
