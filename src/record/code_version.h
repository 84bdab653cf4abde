#pragma once
// Which code a job runs: the git revision that its script's folder stands at, and a hash of the script, so that two
// runs can be told apart by it. Reads small files only and starts no program; whether there are changes that are not
// committed is therefore known of the script alone.
#include <map>
#include <string>
#include <string_view>

#include "base/host.h"

namespace hotlap {

// "code.git.revision" (40 or 64 hexadecimal digits), "code.git.branch", "code.script.hash" (FNV-1a), as attributes of a
// recording; absent: not there, not readable.
// `script` as script_of() gives it; one that is no path ("-m pkg", "-c") counts by its working directory.
std::map<std::string, std::string> code_version(const Host& host, std::string_view script,
                                                std::string_view working_directory);

}  // namespace hotlap
