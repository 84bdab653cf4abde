#include "cli/parse.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <sstream>

#include "cli/dispatch.h"
#include "cli/help.h"
#include "cli/registry.h"

namespace hotlap {
namespace {

using Words = std::vector<std::string>;

constexpr std::array kFlags{
    FlagSpec{.name = "--json", .help = "as JSON"},
    FlagSpec{.name = "--name", .type = FlagType::kText, .placeholder = "N", .help = "a name"},
    FlagSpec{.name = "--interval",
             .type = FlagType::kDuration,
             .placeholder = "500ms",
             .help = "how often",
             .min = 1e7,
             .max = 6e10},
    FlagSpec{
        .name = "--price", .type = FlagType::kNumber, .placeholder = "USD/H", .help = "price", .min = 0, .max = 1e5},
    FlagSpec{.name = "--pid", .type = FlagType::kInteger, .placeholder = "P", .help = "process"},
    FlagSpec{.name = "-o,--output", .type = FlagType::kText, .placeholder = "FILE", .help = "where to"},
};
constexpr std::array kRun{
    PositionalSpec{.name = "COMMAND", .help = "the job", .is_required = true, .takes_rest = true}};
constexpr std::array kMany{PositionalSpec{.name = "RUN", .help = "a run", .is_required = true},
                           PositionalSpec{.name = "FILE", .help = "files", .is_repeated = true}};

Result<int> echo(const Args& args, Streams& streams) {
  if (args.has("--json")) return Error{ErrorCode::kIo, "disk \x1b[31mgone"};
  streams.out << "ran\n";
  return 0;
}

Result<int> inner(const Args&, Streams&) { return 7; }

constexpr CommandSpec kRunSpec{.name = "run",
                               .summary = "Record.",
                               .example = "hotlap run -- true",
                               .flags = kFlags,
                               .positionals = kRun,
                               .run = echo};
constexpr CommandSpec kManySpec{.name = "many",
                                .summary = "Many.",
                                .example = "hotlap many last",
                                .flags = kFlags,
                                .positionals = kMany,
                                .run = echo};
constexpr CommandSpec kHiddenSpec{
    .name = "_inner", .summary = "Inner.", .example = "hotlap _inner", .is_hidden = true, .run = inner};
constexpr std::array<const CommandSpec*, 3> kCommands{&kHiddenSpec, &kManySpec, &kRunSpec};

std::string error_of(const CommandSpec& spec, const Words& words) {
  const Result<ParsedWords> parsed = parse_words(spec, words);
  return parsed.ok() ? "no error" : parsed.error().message;
}

Args args_of(const CommandSpec& spec, const Words& words) {
  Result<ParsedWords> parsed = parse_words(spec, words);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return parsed.ok() ? std::move(parsed->args) : Args{};
}

struct Ran {
  int code;
  std::string out;
  std::string err;
};
Ran run(const Words& words) {
  std::ostringstream out;
  std::ostringstream err;
  Streams streams{.out = out, .err = err};
  const int code = dispatch(kCommands, words, streams);
  return {code, out.str(), err.str()};
}

TEST(Parse, TheJobsCommandLineStaysUntouched) {
  const Words job{"python", "train.py", "--epochs", "3", "--name=x", "--", "--help"};
  Words with_separator{"--name", "a", "--"};
  with_separator.insert(with_separator.end(), job.begin(), job.end());
  Words without{"--name", "a"};
  without.insert(without.end(), job.begin(), job.end());
  for (const Words& words : {with_separator, without}) {
    const Args args = args_of(kRunSpec, words);
    EXPECT_EQ(args.positional("COMMAND"), job);
    EXPECT_EQ(args.text("--name"), "a");
  }
}

TEST(Parse, ValuesOfEveryTypeInBothSpellings) {
  const Args args = args_of(
      kManySpec, {"--interval=1.5s", "last", "--price", "2.5", "-o", "out.html", "--pid=-7", "a", "--json", "b"});
  EXPECT_EQ(args.duration_ns("--interval"), 1'500'000'000);
  EXPECT_EQ(args.number("--price"), 2.5);
  EXPECT_EQ(args.integer("--pid"), -7);
  EXPECT_EQ(args.text("--output"), "out.html");
  EXPECT_EQ(args.text("-o"), "out.html");
  EXPECT_TRUE(args.has("--json"));
  EXPECT_FALSE(args.has("--name"));
  EXPECT_EQ(args.text("--name"), std::nullopt);
  EXPECT_EQ(args.positional("RUN"), Words{"last"});
  EXPECT_EQ(args.positional("FILE"), (Words{"a", "b"}));
}

TEST(Parse, WordsAfterTheSeparatorAreNoFlags) {
  const Args args = args_of(kManySpec, {"last", "--", "--json", "-x"});
  EXPECT_FALSE(args.has("--json"));
  EXPECT_EQ(args.positional("FILE"), (Words{"--json", "-x"}));
}

TEST(Parse, AValueMayBeginWithADashOrBeEmpty) {
  EXPECT_EQ(args_of(kManySpec, {"last", "--name", "-weird"}).text("--name"), "-weird");
  EXPECT_EQ(args_of(kManySpec, {"last", "--name="}).text("--name"), "");
  EXPECT_EQ(args_of(kManySpec, {"last", "--name=a=b"}).text("--name"), "a=b");
  EXPECT_EQ(args_of(kManySpec, {"last", "--name", "[1,2]"}).text("--name"), "[1,2]");
}

TEST(Parse, TheLastOfARepeatedFlagCountsAndAllAreKept) {
  const Args args = args_of(kManySpec, {"last", "--name", "a", "--name", "b"});
  EXPECT_EQ(args.text("--name"), "b");
  EXPECT_EQ(args.values.at("--name"), (Words{"a", "b"}));
}

TEST(Parse, EachMistakeIsNamed) {
  EXPECT_EQ(error_of(kRunSpec, {"--intervall", "1s", "x"}), "unknown flag --intervall; did you mean --interval?");
  EXPECT_EQ(error_of(kRunSpec, {"--zzzzzz", "x"}), "unknown flag --zzzzzz");
  EXPECT_EQ(error_of(kRunSpec, {"-q", "x"}), "unknown flag -q");
  EXPECT_EQ(error_of(kRunSpec, {"--name"}), "--name needs a value after it");
  EXPECT_EQ(error_of(kRunSpec, {"--name", "--json", "x"}), "--name needs a value after it");
  EXPECT_EQ(error_of(kRunSpec, {"--name", "--", "x"}), "--name needs a value after it");
  EXPECT_EQ(error_of(kRunSpec, {"--json=yes", "x"}), "--json takes no value");
  EXPECT_EQ(error_of(kRunSpec, {"--interval", "5ms", "x"}), "--interval 5ms is out of range: it takes 10 ms to 60 s");
  EXPECT_EQ(error_of(kRunSpec, {"--interval", "500", "x"}),
            "--interval takes a duration with its unit (ns us ms s min h d), such as 500ms, not '500'");
  EXPECT_EQ(error_of(kRunSpec, {"--price", "cheap", "x"}), "--price takes a number, not 'cheap'");
  EXPECT_EQ(error_of(kRunSpec, {"--price", "nan", "x"}), "--price takes a number, not 'nan'");
  EXPECT_EQ(error_of(kRunSpec, {"--price", "-1", "x"}), "--price -1 is out of range: it takes 0 to 100000");
  EXPECT_EQ(error_of(kRunSpec, {"--pid", "1.5", "x"}), "--pid takes a whole number, not '1.5'");
  EXPECT_EQ(error_of(kRunSpec, {"--json"}), "COMMAND is missing, as in: hotlap run -- true");
  EXPECT_EQ(error_of(kRunSpec, {"--json", "--"}), "COMMAND is missing, as in: hotlap run -- true");
  EXPECT_EQ(error_of(kHiddenSpec, {"x"}), "unexpected argument 'x'");
  EXPECT_EQ(error_of(kHiddenSpec, {"a\x1b[2Jb"}), "unexpected argument 'a?[2Jb'");
}

TEST(ParseDeathTest, AskingForAFlagThatTheSpecLacksIsABug) {
  const Args args = args_of(kManySpec, {"last"});
  EXPECT_DEATH((void)args.has("--nope"), "internal error");
}

TEST(Dispatch, HelpGoesToStdoutAndWrongUseToStderr) {
  EXPECT_EQ(run({"--help"}).code, 0);
  EXPECT_NE(run({"--help"}).out.find("many"), std::string::npos);
  EXPECT_EQ(run({"--help"}).out.find("_inner"), std::string::npos);
  EXPECT_EQ(run({}).code, 2);
  EXPECT_EQ(run({}).out, "");
  EXPECT_EQ(run({"run", "--help"}).out, command_help(kRunSpec));
  EXPECT_EQ(run({"help", "run"}).out, command_help(kRunSpec));
  EXPECT_EQ(run({"rnu"}).err, "hotlap: unknown command rnu; did you mean run?\n");
  EXPECT_EQ(run({"rnu"}).code, 2);
  EXPECT_EQ(run({"--versoin"}).err, "hotlap: unknown flag --versoin; did you mean --version?\n");
  EXPECT_EQ(run({"frobnicate"}).err, "hotlap: unknown command frobnicate; see hotlap --help\n");
  EXPECT_EQ(run({"run", "--nope"}).err, "hotlap run: unknown flag --nope (see hotlap run --help)\n");
  EXPECT_EQ(run({"run", "--nope"}).code, 2);
}

TEST(Dispatch, ACommandsErrorBecomesOneCleanLineAndItsExitCode) {
  const Ran ran = run({"run", "--json", "x"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err, "hotlap run: disk ?[31mgone\n");
  EXPECT_EQ(run({"_inner"}).code, 7);  // hidden, not absent
}

// A spec that repeats or says nothing would drift into help, docs and completion.
TEST(CommandTable, EverySpecIsCompleteAndUnique) {
  std::set<std::string_view> names;
  for (const CommandSpec* spec : all_commands()) {
    EXPECT_TRUE(names.insert(spec->name).second) << spec->name;
    EXPECT_NE(spec->run, nullptr) << spec->name;
    EXPECT_EQ(spec->name.starts_with('_'), spec->is_hidden) << spec->name;
    EXPECT_FALSE(spec->summary.empty()) << spec->name;
    if (!spec->is_hidden) {
      EXPECT_TRUE(spec->example.starts_with("hotlap " + std::string(spec->name))) << spec->name;
    }
    std::set<std::string_view> spellings{"--help", "-h"};
    for (const FlagSpec& flag : spec->flags) {
      EXPECT_FALSE(flag.help.empty()) << spec->name << " " << flag.name;
      EXPECT_EQ(flag.type == FlagType::kSwitch, flag.placeholder.empty()) << spec->name << " " << flag.name;
      EXPECT_LE(flag.min, flag.max) << spec->name << " " << flag.name;
      for (const std::string_view spelling : flag_spellings(flag)) {
        EXPECT_TRUE(spellings.insert(spelling).second) << spec->name << " " << spelling;
        EXPECT_TRUE(spelling.starts_with("--") || spelling.size() == 2) << spec->name << " " << spelling;
      }
    }
    for (std::size_t i = 0; i < spec->positionals.size(); ++i) {
      const bool is_last = i + 1 == spec->positionals.size();
      EXPECT_FALSE(spec->positionals[i].help.empty()) << spec->name;
      EXPECT_TRUE(is_last || !(spec->positionals[i].takes_rest || spec->positionals[i].is_repeated)) << spec->name;
    }
  }
  EXPECT_FALSE(names.empty());
}

}  // namespace
}  // namespace hotlap
