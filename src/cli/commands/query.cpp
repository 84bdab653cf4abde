// The process of one foreign query, started by `hotlap sql` and for rules in SQL: reads a run, answers on standard
// output in a form of our own (src/query/answer.cpp), holds nothing else and may do nothing else.
#include <unistd.h>

#include <array>

#include "cli/command.h"
#include "cli/options.h"
#include "query/query.h"
#include "store/run_folder.h"
#include "view/analyze.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{
    FlagSpec{.name = "--folder", .type = FlagType::kText, .placeholder = "FOLDER", .help = "the run's folder"},
    FlagSpec{.name = "--sql", .type = FlagType::kText, .placeholder = "TEXT", .help = "the query"},
    FlagSpec{.name = "--time", .type = FlagType::kDuration, .placeholder = "60s", .help = "CPU time that it may take"},
    FlagSpec{.name = "--from", .type = FlagType::kInteger, .placeholder = "NS", .help = "value of :from"},
    FlagSpec{.name = "--to", .type = FlagType::kInteger, .placeholder = "NS", .help = "value of :to"},
    FlagSpec{.name = "--memory", .type = FlagType::kInteger, .placeholder = "BYTES", .help = "that it may take"},
    FlagSpec{.name = "--own-rules", .help = "findings are those of hotlap's own rules"},
    kConfigFlag,
};

Result<void> answer(const Args& args) {
  const Result<Config> config = config_of(args);
  const RuleSettings settings = config.ok() ? rule_settings(*config) : RuleSettings();
  QueryRequest request;
  request.run_folder = args.text("--folder").value_or("");
  request.sql = args.text("--sql").value_or("");
  request.limits.time_ns = args.duration_ns("--time").value_or(request.limits.time_ns);
  if (const auto bytes = args.integer("--memory"); bytes && *bytes > 0) {
    request.limits.memory_bytes = static_cast<std::size_t>(*bytes);
  }
  for (const auto& [flag, name] : {std::pair{"--from", ":from"}, std::pair{"--to", ":to"}}) {
    if (const auto value = args.integer(flag)) request.parameters[name] = *value;
  }
  // A path of a recording alone is a run, too.
  HOTLAP_TRY_ASSIGN(RunFolder folder, RunFolder::find(request.run_folder.parent_path(), request.run_folder.native()));
  const auto findings = [&]() -> Result<std::vector<Finding>> {
    HOTLAP_TRY_ASSIGN(AnalysisDocument document, analyze_run(folder, settings, !args.has("--own-rules")));
    return std::move(document.findings);
  };
  HOTLAP_TRY_ASSIGN(const std::unique_ptr<QueriedRun> run, QueriedRun::open(folder, findings));
  serve_query(*run, request, STDOUT_FILENO);
  return {};
}

Result<int> run(const Args& args, Streams&) {
  if (const Result<void> answered = answer(args); !answered.ok()) serve_error(answered.error(), STDOUT_FILENO);
  return int{kExitSuccess};
}

}  // namespace

extern constinit const CommandSpec command_query{.name = "_query",
                                                 .summary = "The process of one query.",
                                                 .example = "hotlap _query --folder F --sql 'SELECT 1'",
                                                 .flags = kFlags,
                                                 .is_hidden = true,
                                                 .run = run};

}  // namespace hotlap
