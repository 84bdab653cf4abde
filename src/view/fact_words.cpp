#include "view/fact_words.h"

#include <algorithm>
#include <array>
#include <set>

#include "analysis/registry.h"

namespace hotlap {
namespace {

struct Source {
  std::string_view prefix;
  std::string_view words;
};
constexpr std::string_view kInside = "a look inside the step (--profile steps=10:3)";
constexpr std::array kSources{
    Source{"breakdown.", "parts of a step"},
    Source{"ceilings.network", "figures of the network"},
    Source{"ceilings.", "figures of disks"},
    Source{"changes.", "a lasting change of the step time"},
    Source{"clock.", "the machine's clock"},
    Source{"copies.", kInside},
    Source{"core_use.", "the use of cores"},
    Source{"device.", kInside},
    Source{"filesystem.", "the fill of file systems (df)"},
    Source{"gpu.", "GPU figures"},
    Source{"host_memory.", "figures of the machine's memory"},
    Source{"interruptions.", "pauses between steps"},
    Source{"kernel.", "the kernel's log (dmesg)"},
    Source{"kernels.", kInside},
    Source{"launch.", kInside},
    Source{"loader.", "what the loader does (the hook)"},
    Source{"log.collective", "a log's messages of ranks that wait"},
    Source{"log.failure", "a log that ends in an error"},
    Source{"log.out_of_memory", "a log's message of memory that ran out"},
    Source{"log.restart", "a restart"},
    Source{"log.transport", "NCCL's messages (NCCL_DEBUG=INFO)"},
    Source{"log.", "the job's log"},
    Source{"machine.", "the type of the machine"},
    Source{"negotiations.", "a Horovod timeline"},
    Source{"pipeline.", "a timeline of a pipeline's stages"},
    Source{"neighbours.", "what other programs take"},
    Source{"page_cache.", "what each epoch reads"},
    Source{"pauses.", "pauses between steps"},
    Source{"ranks.", "several ranks"},
    Source{"scaling.", "a scaling table"},
    Source{"shapes.", "shapes of the input"},
    Source{"shared_memory.", "the fill of /dev/shm"},
    Source{"slow_steps.", "steps far longer than the others"},
    Source{"start_up.", "the job's start-up"},
    Source{"steps.", "steps"},
    Source{"sync.", kInside},
    Source{"system.", "figures of the machine"},
    Source{"threads.", "the job's threads"},
};

// A rule of the user's may need a series: it stays as it was written.
std::string_view words_of(std::string_view kind) {
  std::string_view help;
  for (const AnalyzerSpec* spec : all_analyzers()) {
    for (const FactSchema& schema : spec->produces) {
      if (schema.kind == kind) help = schema.help;
    }
  }
  if (help.empty()) return kind;
  const auto* const source =
      std::ranges::find_if(kSources, [&](const Source& one) { return kind.starts_with(one.prefix); });
  return source != kSources.end() ? source->words : help;
}

}  // namespace

std::string fact_words(std::string_view missing) {
  constexpr std::string_view kOr = " or ";
  std::string text;
  for (;;) {
    const std::size_t end = missing.find(kOr);
    const std::string_view words = words_of(missing.substr(0, end));
    if (text != words) text += (text.empty() ? std::string_view{} : kOr), text += words;
    if (end == std::string_view::npos) return text;
    missing.remove_prefix(end + kOr.size());
  }
}

std::string fact_words(std::span<const std::string> missing) {
  std::string text;
  std::set<std::string> told;
  for (const std::string& one : missing) {
    const std::string words = fact_words(std::string_view(one));
    if (told.insert(words).second) text += (text.empty() ? "" : ", ") + words;
  }
  return text;
}

}  // namespace hotlap
