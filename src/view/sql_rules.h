#pragma once
// The user's own rules over a run, live and finished: files *.sql of <home>/rules and of $HOTLAP_RULES (folders or
// files, separated by ':'). Each runs in a process of its own; what fails or takes too long is one line and stops
// nothing.
//
// While a run goes on they are asked at most every half minute, and never for more than a twentieth of the time.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/fact.h"
#include "model/finding.h"
#include "rules/engine.h"
#include "rules/sql_rule.h"
#include "store/recording_reader.h"

namespace hotlap {

class SqlRules {
 public:
  // Reads the files; one that is no rule is a problem.
  static SqlRules load();

  bool empty() const { return rules_.empty() && problems_.empty(); }
  // Asks them over everything that `recordings` have, unless they were asked a moment ago and `is_final` is false.
  void ask(const std::filesystem::path& run, std::span<RecordingReader* const> recordings, const FactTable& facts,
           bool is_final);
  // Adds what they answered last. A share of the step beyond what other findings have left of it is cut.
  void add_to(RulesOutcome& outcome) const;
  // One line each: files that are no rules, queries that failed.
  std::vector<std::string> problems() const;

 private:
  std::vector<SqlRule> rules_;
  std::vector<std::string> problems_;        // of files
  std::vector<std::string> query_problems_;  // of the last asking
  std::vector<Finding> findings_;
  std::vector<SkippedRule> not_run_;
  std::int64_t ran_ = 0;
  std::int64_t ask_again_ns_ = INT64_MIN;
};

}  // namespace hotlap
