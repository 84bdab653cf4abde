#include "ingest/log_items.h"

#include <gtest/gtest.h>

#include <string>

#include "base/clock.h"
#include "base/format.h"
#include "ingest/log_prefix.h"

namespace hotlap {
namespace {

// "key=value/total(average)unit", items in their order; '@' marks a clock, '[' one behind a bracket.
std::string items(std::string_view line) {
  std::string text;
  for (const LogItem& item : find_log_items(line)) {
    text += format("{}{}{}{}={}", text.empty() ? "" : "; ", item.is_clock ? "@" : "",
                   item.begins_bracket && item.is_clock ? "[" : "", item.key, item.value);
    if (item.total) text += format("/{}", *item.total);
    if (item.average) text += format("({})", *item.average);
    text += item.unit;
  }
  return text;
}

TEST(LogItems, FormsOfTheFrameworks) {
  EXPECT_EQ(items("Epoch: [0][  10/5005]\tTime  0.512 ( 0.600)\tData  0.010 ( 0.100)\tAcc@1   0.50 (  0.25)"),
            "epoch=0; =10/5005; time=0.512(0.6); data=0.01(0.1); acc@1=0.5(0.25)");
  EXPECT_EQ(items(" 10%|\xE2\x96\x88  | 50/500 [00:25<1:03:45,  2.00it/s, loss=1.23, v_num=3]"),
            "=10%; =50/500; @[=25; @=3825; =2it/s; loss=1.23; v_num=3");
  EXPECT_EQ(items("{'loss': 1.25, 'learning_rate': 5e-05, 'epoch': 0.1}"), "loss=1.25; learning_rate=5e-05; epoch=0.1");
  EXPECT_EQ(items("{\"num_updates\": \"100\", \"loss\": \"1.5\"}"), "num_updates=100; loss=1.5");
  EXPECT_EQ(items("iteration       10/  500 | elapsed time per iteration (ms): 5432.5 | lm loss: 1.0E+01 |"),
            "iteration=10/500; elapsed time per iteration=5432.5ms; lm loss=10");
  EXPECT_EQ(items("Train: 0 [  50/1251 (  4%)]  Time: 0.500s, 1000.00/s  (0.600s,  853.50/s)  Data: 0.010 (0.100)"),
            "train=0; =50/1251; =4%; time=0.5(0.6)s; =1000(853.5)/s; data=0.01(0.1)");
  EXPECT_EQ(items("500/500 [=====] - 25s 50ms/step - loss: 1.2 - val_loss: 1.1"),
            "=500/500; =25s; =50ms/step; loss=1.2; val_loss=1.1");
  EXPECT_EQ(items("forward 0.050 s backward 0.1 sec | step: 1460.00 (ms) | took 5 minutes"),
            "forward=0.05s; backward=0.1sec; step=1460ms; took=5");
  EXPECT_EQ(items("    forward-backward ........: (150.00, 151.00)"), "forward-backward=150; =151");
  EXPECT_EQ(items("step 100: train loss 1.25, val loss 1.5"), "step=100; train loss=1.25; val loss=1.5");
  EXPECT_EQ(items("epoch=0/micro_step=10/global_step=20, CurrSamplesPerSec=12.5"),
            "epoch=0; micro_step=10; global_step=20; currsamplespersec=12.5");
  EXPECT_EQ(items("INFO:__main__:step 5 loss nan grad_norm=inf"), "step=5; loss=nan; grad_norm=inf");
  EXPECT_EQ(items("tps: 1,234,567.5 lr=[1e-05]"), "tps=1234567.5; lr=1e-05");
  EXPECT_EQ(items("at 2024-04-05T10:00:10Z step 5"), "step=5");
  EXPECT_EQ(items("12500 tokens/s, 3 img/s"), "=12500tokens/s; =3img/s");
}

TEST(LogItems, NumbersInsideWordsAreNone) {
  EXPECT_EQ(items("resnet50 v1.2 sha-1 fp16"), "resnet50 v1.2 sha=1");
  EXPECT_EQ(items("nan banana information"), "");
  EXPECT_EQ(items(""), "");
  EXPECT_EQ(items("1e999999 -"), "=inf");
}

TEST(LogItems, TheirNumberIsBounded) {
  std::string line;
  for (int i = 0; i < 10'000; ++i) line += "a=1 ";
  EXPECT_EQ(find_log_items(line).size(), kLogItemsMax);
}

TEST(LogPrefix, TimesAndRanks) {
  constexpr std::int64_t kMoment = 1'712'297'839 * kNsPerS;  // 2024-04-05 06:17:19 UTC
  const auto rest = [](std::string_view line) { return line.substr(read_log_prefix(line).length); };
  EXPECT_EQ(rest("[rank3]: [2024-04-05 06:17:19,000] loss 1"), "loss 1");
  EXPECT_EQ(read_log_prefix("[rank3]: [2024-04-05 06:17:19,000] loss 1").rank, 3);
  EXPECT_EQ(read_log_prefix("[rank3]: [2024-04-05 06:17:19,000] loss 1").unix_ns, kMoment);
  EXPECT_EQ(rest("[1,2]<stdout>:Epoch 1"), "Epoch 1");
  EXPECT_EQ(read_log_prefix("[1,2]<stdout>:Epoch 1").rank, 2);
  EXPECT_EQ(rest("04/05/2024 06:17:19 - INFO - x"), "INFO - x");
  EXPECT_EQ(read_log_prefix("04/05/2024 06:17:19 - INFO - x").unix_ns, kMoment);
  EXPECT_EQ(read_log_prefix("1712297839.5 loss 1").unix_ns, kMoment + 500 * kNsPerMs);
  EXPECT_EQ(read_log_prefix("7: loss 1").rank, 7);
  EXPECT_EQ(rest("Epoch: [0][1/2]"), "Epoch: [0][1/2]");
  EXPECT_EQ(rest("50/100 [==]"), "50/100 [==]");
  EXPECT_EQ(rest("2024-04-05"), "2024-04-05");
}

TEST(LogPrefix, TimesWithoutAYear) {
  const auto rest = [](std::string_view line) { return line.substr(read_log_prefix(line).length); };
  constexpr std::int64_t kMoment = 1'680'675'439 * kNsPerS;  // 2023-04-05 06:17:19 UTC: the year stands for any
  for (const std::string_view line : {"[04/05 06:17:19 d2.utils.events]: iter: 19", "04/05 06:17:19 iter: 19",
                                      "04-05 06:17:19 iter: 19", "I0405 06:17:19 iter: 19"}) {
    EXPECT_EQ(read_log_prefix(line).unix_ns, kMoment) << line;
    EXPECT_FALSE(read_log_prefix(line).has_year) << line;
    EXPECT_TRUE(rest(line).ends_with("iter: 19")) << line;
  }
  EXPECT_EQ(read_log_prefix("I0405 06:17:19.250000 77 x.cc:1] a").unix_ns, kMoment + 250 * kNsPerMs);
  EXPECT_EQ(read_log_prefix("31/12 23:59:59 a").unix_ns, read_log_prefix("12/31 23:59:59 a").unix_ns);
  EXPECT_EQ(read_log_prefix("02/29 00:00:00 a").unix_ns, read_log_prefix("03/01 00:00:00 a").unix_ns);
  EXPECT_TRUE(read_log_prefix("2024-04-05 06:17:19 a").has_year);
  for (const std::string_view line : {"10/20 [00:25<00:10] loss 1", "13/13 06:17:19 a", "10/20 06:17 loss 1", "I0405"})
    EXPECT_EQ(read_log_prefix(line).unix_ns, std::nullopt) << line;
}

TEST(LogEscapes, ColoursAndBackspacesGo) {
  EXPECT_EQ(without_escapes("\x1b[1;32mab\x1b[0mc"), "abc");
  EXPECT_EQ(without_escapes("10\b\b25"), "25");
  EXPECT_EQ(without_escapes("\b\x1b["), "");
}

}  // namespace
}  // namespace hotlap
