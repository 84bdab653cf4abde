#pragma once
// What a text that is no trace looks like, for one line to the user.
#include <string>
#include <string_view>

namespace hotlap {

// The first characters are those of a JSON object or list (behind blanks and a byte order mark).
bool is_json_container(std::string_view head_untrusted);

// "it looks like a PyTorch execution trace (nodes of operators without times): record one with torch.profiler…" for the
// first few KiB of a JSON text.
std::string json_looks(std::string_view head_untrusted);

// The same for a text or file of any sort: a web page, an archive, a picture, a program, plain text.
std::string file_looks(std::string_view head_untrusted);

}  // namespace hotlap
