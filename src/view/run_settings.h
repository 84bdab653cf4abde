#pragma once
// What may differ between two runs and explain a difference: arguments, environment (by allow-list), loader, precision,
// versions, code, machine. All of it as text, as it was recorded.
#include <map>
#include <string>
#include <vector>

#include "model/run.h"
#include "store/run_reader.h"

namespace hotlap {

// area → name → text. Areas: "argument", "told" (by meta.json, and by attributes "meta.…" of imports), "environment",
// "loader", "precision", "version", "code", "machine".
using RunSettings = std::map<std::string, std::map<std::string, std::string>>;

RunSettings read_run_settings(const RunInfo& info, RunReader& reader);

// The words of a command line behind its program: "--lr 0.1", "--lr=0.1" and "lr=0.1" have a name, "--amp" is "set",
// others are "1", "2" … by their place. A flag that is given twice has both values.
std::map<std::string, std::string> named_arguments(const std::vector<std::string>& command);

struct SettingDifference {
  std::string area;
  std::string name;
  std::string before;  // "not set" where a side does not have it, "0 or 2" where its runs differ
  std::string after;
};
// In the order of areas above. A side may be several runs. What a side did not record at all, as an older hotlap did
// not, is no difference.
std::vector<SettingDifference> settings_differences(const std::vector<const RunSettings*>& before,
                                                    const std::vector<const RunSettings*>& after);

}  // namespace hotlap
