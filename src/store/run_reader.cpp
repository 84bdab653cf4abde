#include "store/run_reader.h"

#include <algorithm>
#include <utility>

namespace hotlap {

Result<RunReader> RunReader::open(RunFolder folder) {
  RunReader reader(std::move(folder));
  reader.open_new();
  if (reader.recordings_.empty() && !reader.problems_.empty()) return std::move(reader.problems_.front());
  return reader;
}

void RunReader::open_new() {
  for (const std::filesystem::path& path : folder_.recordings()) {
    // By file name: a recording that has moved from its stand-in to the run folder is the same one.
    const auto is_same = [&](const std::filesystem::path& other) { return other.filename() == path.filename(); };
    if (std::any_of(opened_.begin(), opened_.end(), is_same)) continue;
    Result<std::unique_ptr<RecordingReader>> recording = RecordingReader::open(path);
    if (!recording.ok()) {
      problems_.push_back(std::move(recording).error());
      continue;
    }
    const auto place = std::upper_bound(opened_.begin(), opened_.end(), path);
    recordings_.insert(recordings_.begin() + (place - opened_.begin()), std::move(recording).value());
    opened_.insert(place, path);
  }
}

Result<void> RunReader::refresh() {
  problems_.clear();
  for (const std::unique_ptr<RecordingReader>& recording : recordings_) {
    if (Result<void> read = recording->refresh(); !read.ok()) problems_.push_back(std::move(read).error());
  }
  open_new();
  return folder_.reload();
}

}  // namespace hotlap
