#include "config/config.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <array>
#include <fstream>

#include "base/format.h"

namespace hotlap {
namespace {

std::string error_of(std::string_view text) {
  const Result<Config> config = parse_config(text, "hotlap.toml");
  return config.ok() ? "no error" : config.error().message;
}

TEST(Config, EveryKeyIsRead) {
  const Result<Config> config = parse_config(R"(
interval = "250ms"
name = "resnet"
price = 2
keep = "30d"
hook = false
quiet = true
horovod_timeline = true
[rules.InputBound]
min_pct = 7.5
mode = "strict"
)",
                                             "hotlap.toml");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->interval_ns, 250'000'000);
  EXPECT_EQ(config->name, "resnet");
  EXPECT_EQ(config->price_per_hour, 2.0);
  EXPECT_EQ(config->keep_ns, 30LL * 86'400 * 1'000'000'000);
  EXPECT_EQ(config->hook, false);
  EXPECT_EQ(config->quiet, true);
  EXPECT_EQ(config->horovod_timeline, true);
  EXPECT_EQ(config->rules.at("InputBound").at("min_pct").value, "7.5");
  EXPECT_EQ(config->rules.at("InputBound").at("mode").value, "strict");
  EXPECT_EQ(config->rules.at("InputBound").at("mode").where, "hotlap.toml:11: rules.InputBound.mode");
}

// The table is what the reference is made from: an example that does not work would be printed there.
TEST(Config, TheExampleOfEveryKeyWorks) {
  for (const ConfigKey& key : config_keys()) {
    const Result<Config> config = parse_config(format("{} = {}", key.name, key.example), "x.toml");
    EXPECT_TRUE(config.ok()) << key.name << ": " << (config.ok() ? "" : config.error().message);
    EXPECT_FALSE(key.help.empty()) << key.name;
  }
}

TEST(Config, AbsentIsAbsent) {
  const Result<Config> config = parse_config("", "hotlap.toml");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->interval_ns, std::nullopt);
  EXPECT_EQ(config->hook, std::nullopt);
  EXPECT_TRUE(config->rules.empty());
}

TEST(Config, EachMistakeIsNamedWithFileLineAndKey) {
  EXPECT_EQ(error_of("\n\nintervall = \"1s\""), "hotlap.toml:3: intervall: unknown key; did you mean interval?");
  EXPECT_EQ(error_of("zzz = 1"), "hotlap.toml:1: zzz: unknown key");
  EXPECT_EQ(error_of("[rule.InputBound]\nx = 1"), "hotlap.toml:1: rule: unknown key; did you mean rules?");
  EXPECT_EQ(error_of("interval = 500"),
            "hotlap.toml:1: interval: takes a duration in quotes, such as \"500ms\", not 500");
  EXPECT_EQ(error_of("interval = \"fast\""),
            "hotlap.toml:1: interval: takes a duration in quotes, such as \"500ms\", not \"fast\"");
  EXPECT_EQ(error_of("interval = \"1ms\""), "hotlap.toml:1: interval: \"1ms\" is out of range: it takes 10 ms to 60 s");
  EXPECT_EQ(error_of("price = \"cheap\""), "hotlap.toml:1: price: takes a number, not \"cheap\"");
  EXPECT_EQ(error_of("price = nan"), "hotlap.toml:1: price: nan is out of range: it takes 0.0001 to 100000");
  EXPECT_EQ(error_of("price = -1"), "hotlap.toml:1: price: -1 is out of range: it takes 0.0001 to 100000");
  EXPECT_EQ(error_of("hook = \"no\""), "hotlap.toml:1: hook: takes true or false, not \"no\"");
  EXPECT_EQ(error_of("hook = [true]"), "hotlap.toml:1: hook: takes true or false, not a list");
  EXPECT_EQ(error_of("hook = 2026-01-01"), "hotlap.toml:1: hook: takes true or false, not a date or time");
  EXPECT_EQ(error_of("name = \" \""), "hotlap.toml:1: name: is empty; leave the line out instead");
  EXPECT_EQ(error_of("name = {a = 1}"), "hotlap.toml:1: name: takes text in quotes, not a table");
  EXPECT_EQ(error_of("price = 1\ninstance = \"g5\""),
            "hotlap.toml:1: price: price and instance exclude each other; keep one");
  EXPECT_EQ(error_of("rules = 1"), "hotlap.toml:1: rules: takes tables, one per rule: [rules.InputBound]");
  EXPECT_EQ(error_of("[rules]\nInputBound = 1"),
            "hotlap.toml:2: rules.InputBound: takes tables, one per rule: [rules.InputBound]");
  EXPECT_EQ(error_of("[rules.InputBound]\nx = [1]"), "hotlap.toml:2: rules.InputBound.x: takes one value, not a list");
  EXPECT_TRUE(error_of("name = \"a\"\n= 3").starts_with("hotlap.toml:2: not valid TOML: "));
  EXPECT_TRUE(error_of("name = \"a\"\nname = \"b\"").starts_with("hotlap.toml:2: not valid TOML: "));
  EXPECT_TRUE(error_of("name = \"\xff\"").starts_with("hotlap.toml:1: not valid TOML: "));
  EXPECT_TRUE(error_of("x = " + std::string(100'000, '[')).starts_with("hotlap.toml:1: not valid TOML: "));
}

TEST(Config, TheStrongerFileWinsKeyByKey) {
  const Config merged = merge_config(*parse_config("interval = \"1s\"\nprice = 3\n[rules.A]\nx = 1\ny = 1", "home"),
                                     *parse_config("instance = \"g5\"\nhook = true\n[rules.A]\ny = 2", "project"));
  EXPECT_EQ(merged.interval_ns, 1'000'000'000);
  EXPECT_EQ(merged.price_per_hour, std::nullopt);
  EXPECT_EQ(merged.instance, "g5");
  EXPECT_EQ(merged.hook, true);
  EXPECT_EQ(merged.rules.at("A").at("x").value, "1");
  EXPECT_EQ(merged.rules.at("A").at("y").value, "2");
}

TEST(Config, UnknownRulesAndParametersAreNamed) {
  const std::array<KnownRule, 2> known{KnownRule{.id = "InputBound", .params = {"min_pct", "min_steps"}},
                                       KnownRule{.id = "HotCore", .params = {}}};
  const auto check = [&](std::string_view text) {
    const Result<void> checked = check_rule_names(*parse_config(text, "f"), known);
    return checked.ok() ? std::string("ok") : checked.error().message;
  };
  EXPECT_EQ(check("[rules.InputBound]\nmin_pct = 1"), "ok");
  EXPECT_EQ(check("[rules.InputBond]\nmin_pct = 1"),
            "f:2: rules.InputBond.min_pct: unknown rule; did you mean InputBound?");
  EXPECT_EQ(check("[rules.InputBound]\nmin_pc = 1"),
            "f:2: rules.InputBound.min_pc: unknown parameter of InputBound; did you mean min_pct?");
  EXPECT_EQ(check("[rules.HotCore]\nx = 1"), "f:2: rules.HotCore.x: unknown parameter of HotCore");
}

class ConfigFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "hotlap_config_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::filesystem::create_directories(folder_ / "home");
    std::filesystem::create_directories(folder_ / "work");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(std::string_view name, std::string_view text) { std::ofstream(folder_ / name) << text; }
  Result<Config> load(std::string_view file = {}) {
    return load_config({.home = folder_ / "home",
                        .working_directory = folder_ / "work",
                        .file = file.empty() ? std::filesystem::path() : folder_ / file});
  }

  std::filesystem::path folder_;
};

TEST_F(ConfigFiles, NoFileIsNoConfiguration) {
  const Result<Config> config = load();
  ASSERT_TRUE(config.ok());
  EXPECT_TRUE(config->files.empty());
}

TEST_F(ConfigFiles, ANamedFileReplacesTheProjectFile) {
  write("home/config.toml", "interval = \"1s\"\nname = \"home\"");
  write("work/hotlap.toml", "name = \"project\"");
  write("own.toml", "hook = false");
  EXPECT_EQ(load()->name, "project");
  EXPECT_EQ(load()->interval_ns, 1'000'000'000);
  EXPECT_EQ(load("own.toml")->name, "home");
  EXPECT_EQ(load("own.toml")->hook, false);
}

TEST_F(ConfigFiles, WhatCannotBeReadIsAnErrorThatNamesIt) {
  EXPECT_TRUE(load("absent.toml").error().message.ends_with("absent.toml: No such file or directory"));
  EXPECT_EQ(load("absent.toml").error().code, ErrorCode::kInvalidInput);
  EXPECT_TRUE(load("home").error().message.ends_with("home: is a folder, not a file"));
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(load("pipe").error().message.ends_with("pipe: is a pipe, not a file"));
  write("home/config.toml", "interval = 1");
  EXPECT_NE(load().error().message.find("home/config.toml:1: interval: takes"), std::string::npos);
}

}  // namespace
}  // namespace hotlap
