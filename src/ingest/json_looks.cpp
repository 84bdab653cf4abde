#include "ingest/json_looks.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/ascii.h"
#include "base/format.h"
#include "base/text.h"
#include "ingest/json_scan.h"
#include "ingest/table_columns.h"

namespace hotlap {
namespace {

constexpr std::size_t kTitlesShownMax = 60;

struct Look {
  std::initializer_list<std::string_view> has;  // every one of them
  std::string_view words;
};

const std::array<Look, 9> kJsonLooks{{
    {{"\"nodes\"", "\"ctrl_deps\""},
     "a PyTorch execution trace: a graph of operators without times; the trace beside it, "
     "from torch.profiler's export_chrome_trace, has them"},
    {{"chakra"}, "a Chakra execution trace: a graph of operators without times"},
    {{"\"nodes\"", "\"schema\""},
     "a PyTorch execution trace: a graph of operators without times; the trace beside it, "
     "from torch.profiler's export_chrome_trace, has them"},
    {{"\"device_traces\""}, "a snapshot of PyTorch's memory: it has no times of work"},
    {{"\"segments\"", "\"total_size\""}, "a snapshot of PyTorch's memory: it has no times of work"},
    {{"\"cells\"", "\"nbformat\""}, "a notebook"},
    {{"\"weight_map\""}, "an index of model weights"},
    {{"\"model_type\""}, "the configuration of a model"},
    {{"\"lockfileVersion\""}, "a lock file of packages"},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kMagics{{
    {"PK\x03\x04", "a zip archive: unpack it first"},
    {"\x7F"
     "ELF",
     "a program"},
    {"%PDF", "a PDF document"},
    {"\x89PNG", "a picture"},
    {"PAR1", "a Parquet file"},
    {"SQLite format 3", "an SQLite database of another program"},
    {"\x1F\x8B", "a gzip file that holds another one, or is damaged at its start"},
    {"BZh", "a bzip2 file: unpack it first"},
    {"\xFD"
     "7zXZ",
     "an xz file: unpack it first"},
}};

std::string_view behind_blanks(std::string_view head) {
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  while (!head.empty() && json::is_space(head.front())) head.remove_prefix(1);
  return head;
}

// The keys at the top of an object, as far as the head shows them.
std::string keys_of(std::string_view object) {
  std::string keys;
  std::string_view key;
  std::string_view rest = object;
  int count = 0;
  const char* at = rest.data() + 1;
  const char* const end = rest.data() + rest.size();
  constexpr int kShownMax = 5;
  while (count < kShownMax) {
    at = json::skip_space(at, end);
    if (at != end && *at == ',') at = json::skip_space(at + 1, end);
    if (at == end || *at != '"') break;
    ++at;
    json::Text text;
    if (json::scan_text(at, end, text) != json::Scan::kOk) break;
    key = text.raw.substr(0, 40);
    keys += (keys.empty() ? "" : ", ") + to_valid_utf8(key);
    ++count;
    at = json::skip_space(at, end);
    if (at == end || *at != ':') break;
    at = json::skip_space(at + 1, end);
    if (json::skip_value(at, end) != json::Scan::kOk) break;
  }
  return strip_control(keys);
}

}  // namespace

bool is_json_container(std::string_view head_untrusted) {
  const std::string_view head = behind_blanks(head_untrusted);
  return !head.empty() && (head.front() == '{' || head.front() == '[');
}

std::string json_looks(std::string_view head_untrusted) {
  const std::string_view head = behind_blanks(head_untrusted);
  for (const Look& look : kJsonLooks) {
    const bool has_all =
        std::ranges::all_of(look.has, [&](std::string_view part) { return head.find(part) != std::string_view::npos; });
    if (has_all) return format("it looks like {}", look.words);
  }
  if (const std::size_t key = head.find("\"traceEvents\""); key != std::string_view::npos) {
    const std::string_view value = behind_blanks(head.substr(std::min(head.find(':', key) + 1, head.size())));
    return value.starts_with('[') ? "its list of events is empty" : "its traceEvents is no list";
  }
  if (head.starts_with('[')) {
    const std::string_view inside = behind_blanks(head.substr(1));
    if (inside.starts_with('[')) {
      return "it looks like a memory timeline (a list of lists): it has no times of work; the trace from "
             "export_chrome_trace has them";
    }
    if (inside.starts_with(']')) return "it is an empty list";
    if (!inside.starts_with('{')) return "it is a JSON list, but not of events";
    return "it is a JSON list of objects without \"ph\" and \"ts\"";
  }
  const std::string keys = keys_of(head);
  return keys.empty() ? "it is an empty JSON object" : format("it is a JSON object with {}", keys);
}

namespace {

// "[1209600.123456] python3 invoked oom-killer: …", also with "<6>" or a date in front.
bool is_kernel_log(std::string_view line) {
  const std::size_t bracket = line.find('[');
  const std::size_t end = line.find(']', bracket == std::string_view::npos ? 0 : bracket);
  if (bracket == std::string_view::npos || end == std::string_view::npos) return false;
  const std::string_view time = trim(line.substr(bracket + 1, end - bracket - 1));
  const bool has_point = time.size() > 7 && time[time.size() - 7] == '.';
  const bool is_first =
      bracket == 0 || line.starts_with('<') || line.substr(0, bracket).find("kernel:") != std::string_view::npos;
  return is_first && has_point && parse_f64(time);
}

// "main (train.py:210);forward (model.py:12) 42": stacks of a sampler with how often each was seen.
bool is_folded_stack(std::string_view line) {
  const std::size_t blank = line.rfind(' ');
  return line.find(';') != std::string_view::npos && blank != std::string_view::npos && line.find(';') < blank &&
         parse_u64(line.substr(blank + 1)).has_value();
}

// Words, and below them as many fields of which one is a number.
bool is_table(std::string_view titles, std::string_view row) {
  for (const char separator : {'\t', ';', ','}) {
    const auto words = split(titles, separator);
    const auto fields = split(row, separator);
    if (words.size() < 2 || fields.size() != words.size()) continue;
    const auto is_number = [](std::string_view field) { return parse_f64(trim(field)).has_value(); };
    return std::ranges::none_of(words, is_number) && std::ranges::any_of(fields, is_number);
  }
  return false;
}

std::string text_looks(std::string_view head) {
  const std::string_view first = trim(head.substr(0, head.find('\n')));
  const std::size_t second_at = std::min(head.find('\n'), head.size() - 1) + 1;
  const std::string_view rest = head.substr(std::min(second_at, head.size()));
  const std::string_view second = trim(rest.substr(0, rest.find('\n')));
  if (is_table(first, second)) {
    return format("it is a table, but too few of its titles are known ({}); these would do: {}",
                  strip_control(first.substr(0, kTitlesShownMax)), kTableTitlesHelp);
  }
  return "it is text of no known format; hotlap import --formats lists those that are read, --format names one";
}

}  // namespace

std::string file_looks(std::string_view head_untrusted) {
  if (head_untrusted.empty()) return "it is empty";
  for (const auto& [magic, words] : kMagics) {
    if (head_untrusted.starts_with(magic)) return format("it looks like {}", words);
  }
  const std::string_view head = behind_blanks(head_untrusted);
  if (head.empty()) return "it is empty but for blanks";
  if (head_untrusted.starts_with("\xFF\xFE") || head_untrusted.starts_with("\xFE\xFF")) {
    return "it looks like UTF-16, as PowerShell's > writes: convert it with iconv -f UTF-16 -t UTF-8";
  }
  const std::string begin = to_lower(head.substr(0, 256));
  if (begin.starts_with("<!doctype html") || begin.starts_with("<html")) {
    return "it looks like a web page, perhaps an error page in place of a download";
  }
  if (begin.starts_with("<?xml") && begin.find("<error>") != std::string::npos) {
    return "it looks like the error of an object store in place of a download";
  }
  if (begin.starts_with("<?xml")) return "it looks like XML";
  const std::string_view first = head.substr(0, head.find('\n'));
  if (is_folded_stack(trim(first))) {
    return "it looks like folded stacks of a profiler (py-spy, perf): they have no times of steps; record with hotlap "
           "run, or a trace of torch.profiler";
  }
  if (is_kernel_log(first)) return "it looks like a kernel log (dmesg) without a word of memory that ran out or a GPU";
  if (begin.starts_with('<')) return "it looks like a piece of HTML or XML";
  if (begin.starts_with("version https://git-lfs"))
    return "it is a Git LFS pointer: fetch the file with `git lfs pull`";
  if (head.starts_with('{') || head.starts_with('[')) return json_looks(head);
  if (head_untrusted.find('\0') != std::string_view::npos) return "it is binary";
  return text_looks(head);
}

}  // namespace hotlap
