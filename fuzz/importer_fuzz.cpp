// One importer past the sniffer: HOTLAP_FUZZ_IMPORTER names it, without it all are run. What is made of a file must not
// depend on how it is cut into chunks; importers of paths get a file or a folder of it. tools/check.sh fuzz-smoke and
// ctest (fuzz.replay.importer.<name>) run it once for each.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/format.h"
#include "ingest/registry.h"
#include "support/import_capture.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

// A folder of this process that goes with it.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / hotlap::format("hotlap-fuzz-{}", ::getpid())) {
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path write(const std::string& name, std::string_view content) const {
    const fs::path path = path_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(content.data(), static_cast<std::streamsize>(content.size()));
    return path;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

const Scratch& scratch() {
  static const Scratch one;
  return one;
}

void import_place(const hotlap::ImporterSpec& spec, std::string_view content) {
  if (spec.name == "smdebug_folder") {
    for (const char* name : {"folder/system/incremental/2020060500/1591160699.algo-1.json",
                             "folder/framework/pevents/2020060500/1591160699000000_0001_model_timeline.json"}) {
      scratch().write(name, content);
    }
    (void)hotlap::test::import_path(spec, scratch().path() / "folder");
  } else {
    (void)hotlap::test::import_path(spec, scratch().write("file", content));
  }
}

void run(const hotlap::ImporterSpec& spec, std::string_view content, std::size_t chunk_bytes) {
  if (spec.open_stream == nullptr) return import_place(spec, content);
  const std::string whole = hotlap::test::import_stream(spec, content, SIZE_MAX);
  if (hotlap::test::import_stream(spec, content, chunk_bytes) == whole) return;
  std::fprintf(stderr, "%.*s: in chunks of %zu bytes something else comes out than at once\n",
               static_cast<int>(spec.name.size()), spec.name.data(), chunk_bytes);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const char* const wanted = std::getenv("HOTLAP_FUZZ_IMPORTER");  // empty: all
  if (size > (std::size_t{1} << 20)) return 0;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  std::size_t chunk_bytes = 1;  // of each input another one
  for (const char c : content.substr(0, 256)) chunk_bytes = (chunk_bytes * 31 + static_cast<unsigned char>(c)) % 251;
  bool has_run = false;
  for (const hotlap::ImporterSpec* spec : hotlap::all_importers()) {
    if (wanted != nullptr && *wanted != 0 && spec->name != wanted) continue;
    run(*spec, content, chunk_bytes + 1);
    has_run = true;
  }
  if (!has_run) std::abort();  // no importer of that name: nothing would be tried
  return 0;
}
