#include "cli/options.h"

#include <gtest/gtest.h>

#include <array>

#include "cli/parse.h"
#include "record/recorder.h"

namespace hotlap {
namespace {

constexpr std::array kFlags{kNameFlag, kIntervalFlag, kPriceFlag, kInstanceFlag, kQuietFlag};
constexpr CommandSpec kSpec{.name = "run", .summary = "s", .example = "hotlap run", .flags = kFlags};

Result<RunOptions> options(const std::vector<std::string>& words, std::string_view toml) {
  const Result<Config> config = parse_config(toml, "hotlap.toml");
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message);
  const Result<ParsedWords> parsed = parse_words(kSpec, words);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return run_options(parsed->args, *config);
}

TEST(RunOptions, DefaultsWithoutFlagsAndFiles) {
  const Result<RunOptions> got = options({}, "");
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->interval_ns, kIntervalNsDefault);
  EXPECT_TRUE(got->wants_hook);
  EXPECT_FALSE(got->is_quiet);
  EXPECT_FALSE(got->wants_horovod_timeline);
  EXPECT_EQ(got->price, std::nullopt);
  EXPECT_EQ(got->name, std::nullopt);
}

TEST(RunOptions, FlagsWinOverFiles) {
  constexpr std::string_view kToml =
      "name = \"file\"\ninterval = \"1s\"\nprice = 2\nhook = false\nquiet = true\nhorovod_timeline = true";
  const Result<RunOptions> by_file = options({}, kToml);
  ASSERT_TRUE(by_file.ok());
  EXPECT_EQ(by_file->name, "file");
  EXPECT_EQ(by_file->interval_ns, 1'000'000'000);
  EXPECT_EQ(by_file->price->per_hour, 2.0);
  EXPECT_EQ(by_file->price->source, "configuration");
  EXPECT_FALSE(by_file->wants_hook);
  EXPECT_TRUE(by_file->is_quiet);
  EXPECT_TRUE(by_file->wants_horovod_timeline);
  const Result<RunOptions> by_flag = options({"--name", "flag", "--interval=100ms", "--instance", "g5.2xlarge"}, kToml);
  ASSERT_TRUE(by_flag.ok()) << by_flag.error().message;
  EXPECT_EQ(by_flag->name, "flag");
  EXPECT_EQ(by_flag->interval_ns, 100'000'000);
  EXPECT_TRUE(by_flag->price->source.starts_with("catalogue ")) << by_flag->price->source;
}

TEST(RunOptions, ANameThatNamesNothingIsWrongUse) {
  for (const char* name : {"", " ", "last"}) {
    const Result<RunOptions> got = options({"--name", name}, "");
    ASSERT_FALSE(got.ok()) << name;
    EXPECT_EQ(got.error().code, ErrorCode::kInvalidInput);
    EXPECT_EQ(got.error().message,
              "--name '" + std::string(name) + "': a run needs a name of its own; last means the newest run");
  }
  EXPECT_EQ(options({"--name", "lastly"}, "")->name, "lastly");
}

TEST(RunOptions, APriceThatCannotBeUsedIsWrongUse) {
  EXPECT_TRUE(
      options({}, "\ninstance = \"g5.nonsense\"").error().message.starts_with("hotlap.toml:2: instance: no price"))
      << options({}, "\ninstance = \"g5.nonsense\"").error().message;
  EXPECT_EQ(options({"--price", "1", "--instance", "g5.2xlarge"}, "").error().message,
            "--price and --instance exclude each other: keep one");
  EXPECT_EQ(options({"--instance", "g5.3xlarge"}, "").error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(options({}, "instance = \"abacus\"").error().code, ErrorCode::kInvalidInput);
}

constexpr std::array kParams{
    ParamDesc{.name = "min_pct", .default_text = "5", .min = 0, .max = 100, .unit = "%", .help = "h"}};
constexpr RuleSpec kRule{.id = "InputBound", .title = "t", .params = kParams};
constexpr std::array<const RuleSpec*, 1> kRules{&kRule};

std::string rules_error(std::string_view toml) {
  const Result<void> checked = check_rules(*parse_config(toml, "hotlap.toml"), kRules);
  return checked.ok() ? "ok" : checked.error().message;
}

TEST(CheckRules, AWrongRuleParameterOrValueIsNamedWithItsLine) {
  EXPECT_EQ(rules_error("[rules.InputBound]\nmin_pct = 7"), "ok");
  EXPECT_EQ(rules_error("[rules.InputBond]\nmin_pct = 7"),
            "hotlap.toml:2: rules.InputBond.min_pct: unknown rule; did you mean InputBound?");
  EXPECT_EQ(rules_error("[rules.InputBound]\nmin_pc = 7"),
            "hotlap.toml:2: rules.InputBound.min_pc: unknown parameter of InputBound; did you mean min_pct?");
  EXPECT_TRUE(
      rules_error("[rules.InputBound]\nmin_pct = 700").starts_with("hotlap.toml:2: rules.InputBound.min_pct: "));
  EXPECT_TRUE(
      rules_error("[rules.InputBound]\nmin_pct = true").starts_with("hotlap.toml:2: rules.InputBound.min_pct: "));
}

TEST(CheckRules, SettingsReachTheRules) {
  const RuleSettings settings = rule_settings(*parse_config("[rules.InputBound]\nmin_pct = 7.5", "hotlap.toml"));
  EXPECT_EQ(settings.at("InputBound").at("min_pct"), "7.5");
}

}  // namespace
}  // namespace hotlap
