// Hostile recordings: whatever the bytes of a .hotlap file, opening and reading it whole ends in values or an error.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "store/recording_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kPointsMax = 100;

std::string scratch_path() {
  static const std::string* const path = new std::string(
      (std::filesystem::temp_directory_path() / ("hotlap-fuzz-" + std::to_string(::getpid()) + ".hotlap")).string());
  return *path;
}

void read_whole(hotlap::RecordingReader& reader) {
  std::vector<hotlap::SeriesHandle> handles;
  for (const hotlap::StoredSeries& series : reader.series()) handles.push_back(series.handle);
  std::size_t seen = 0;
  const auto count = [&](hotlap::SeriesHandle, auto points) { seen += points.size(); };
  (void)reader.extent().ok();
  (void)reader.read_samples(handles, {}, count).ok();
  (void)reader.read_tiers(handles, {}, kPointsMax, count).ok();
  (void)reader.read_spans({}, {}, [&](std::span<const hotlap::Span> spans) { seen += spans.size(); }).ok();
  (void)reader.read_events({}).ok();
  (void)reader.read_clock().ok();
  (void)reader.read_processes().ok();
  (void)reader.read_losses().ok();
  (void)reader.read_attributes().ok();
  (void)reader.name(1);
  (void)reader.refresh().ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > (std::size_t{1} << 20)) return 0;
  const std::string path = scratch_path();
  {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  const auto reader = hotlap::RecordingReader::open(path);
  if (reader.ok()) {
    read_whole(**reader);
  } else if (reader.error().message.empty()) {
    std::abort();  // an error says what is wrong
  }
  std::filesystem::remove(path);
  return 0;
}
