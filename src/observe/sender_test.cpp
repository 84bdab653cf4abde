#include "observe/sender.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/format.h"
#include "support/temp_dir.h"
#include "wire/ring_reader.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

// What came through a ring, names looked up as the recorder does.
class Received final : public RecordVisitor {
 public:
  void on_span(const Span& span, std::uint8_t) override {
    EXPECT_TRUE(span.name == 0 || names.contains(span.name)) << "a span came before its name";
    spans[span.name == 0 ? std::string() : names[span.name]].push_back(span);
    ++span_count;
  }
  void on_name(std::uint32_t id, std::string_view text) override {
    names[id] = text;
    ++name_count;
  }
  void on_info(std::int64_t, std::string_view key, std::string_view json) override { infos[std::string(key)] = json; }
  void on_count(std::uint32_t name, std::int64_t, double value, std::int64_t, std::uint8_t flags) override {
    EXPECT_EQ(flags, kCountOfHook);
    ASSERT_TRUE(names.contains(name));
    figures[names[name]] = value;
  }
  void on_phase(std::int64_t, std::uint32_t, std::int64_t) override { ADD_FAILURE(); }
  void on_process(const ProcessRecord&) override { ADD_FAILURE(); }
  void on_end(std::int64_t, std::uint32_t) override { has_ended = true; }

  std::map<std::uint32_t, std::string> names;
  std::map<std::string, std::vector<Span>> spans;
  std::map<std::string, std::string> infos;
  std::map<std::string, double> figures;
  std::size_t span_count = 0;
  std::size_t name_count = 0;
  bool has_ended = false;
};

class SenderTest : public testing::Test {
 protected:
  void SetUp() override { ::setenv("HOTLAP_OBSERVER_RING_DIR", folder_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("HOTLAP_OBSERVER_RING_DIR"); }

  // In zeroed memory, as an observer has it. It is never given back: this thread's buffer in it may be asked for again.
  static Sender& make_sender() {
    void* memory =
        ::mmap(nullptr, sizeof(Sender), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return *static_cast<Sender*>(memory);
  }
  std::string ring_path(const std::string& suffix = ".test.ring") const {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      if (entry.path().native().ends_with(suffix)) return entry.path().native();
    }
    return {};
  }
  RingReader open_ring() const {
    Result<RingReader> opened = RingReader::open(ring_path(), ::geteuid());
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::move(opened).value();
  }
  // A span whose end is now, so that time goes on as in a job.
  static ObservedSpan span(Sender& sender, std::uint32_t name, std::int64_t duration_ns = 1'000) {
    return {.start_ns = observer_now_ns() - duration_ns,
            .duration_ns = duration_ns,
            .value_a = -1,
            .value_b = 5,
            .name = name,
            .thread = sender.thread(),
            .kind = SpanKind::kUser,
            .is_total = false,
            .flags = 0,
            .weight = 1};
  }

  test::TempDir folder_;
};

TEST_F(SenderTest, WhatIsHandedInComesOutWithItsNames) {
  Sender& sender = make_sender();
  ASSERT_TRUE(sender.start("test"));
  sender.info("key", "a \"text\"\n");
  const std::uint32_t name = sender.number_of("load");
  sender.span(span(sender, name, 2'000'000));
  std::thread([&] { sender.span(span(sender, sender.number_of("save"))); }).join();
  sender.finish();

  RingReader ring = open_ring();
  Received received;
  ASSERT_TRUE(ring.poll(received).ok());
  EXPECT_EQ(ring.identity().writer_kind, 2U);
  EXPECT_EQ(ring.identity().pid, static_cast<std::uint32_t>(::getpid()));
  ASSERT_EQ(received.spans["load"].size(), 1U);
  ASSERT_EQ(received.spans["save"].size(), 1U);
  const Span& load = received.spans["load"][0];
  EXPECT_EQ(load.duration_ns, 2'000'000);
  EXPECT_EQ(load.thread, static_cast<std::uint32_t>(::gettid()));
  EXPECT_EQ(load.value_a, -1);
  EXPECT_EQ(load.value_b, 5);
  EXPECT_NE(received.spans["save"][0].thread, load.thread);
  EXPECT_EQ(received.infos["key"], R"("a \"text\"\u000a")");
  EXPECT_EQ(received.figures["range.calls load"], 1);
  EXPECT_EQ(received.figures["range.time.ns load"], 2'000'000);
  EXPECT_TRUE(received.has_ended);
  EXPECT_EQ(ring.live().closed, 1U);
  EXPECT_GT(ring.live().own_time_ns, 0);

  sender.span(span(sender, name));
  Received later;
  ASSERT_TRUE(ring.poll(later).ok());
  EXPECT_EQ(later.span_count, 0U) << "nothing is sent after the end";
}

TEST_F(SenderTest, WithoutAFolderItIsOff) {
  ::unsetenv("HOTLAP_OBSERVER_RING_DIR");
  Sender& sender = make_sender();
  EXPECT_FALSE(sender.start("test"));
  EXPECT_FALSE(sender.is_on());
  ::setenv("HOTLAP_OBSERVER_RING_DIR", folder_.path().c_str(), 1);
  ::setenv("HOTLAP", "0", 1);
  EXPECT_FALSE(make_sender().start("test"));
  ::unsetenv("HOTLAP");
}

TEST_F(SenderTest, AFolderThatOthersMayEnterIsNotUsed) {
  fs::permissions(folder_.path(), fs::perms::group_all, fs::perm_options::add);
  Sender& sender = make_sender();
  ASSERT_TRUE(sender.start("test"));
  sender.span(span(sender, sender.number_of("load")));
  EXPECT_FALSE(sender.is_on());
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(SenderTest, ALimitOnFilesSwitchesItOffAndDoesNotEndTheProcess) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 64 * 1024;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Sender& sender = make_sender();
  ASSERT_TRUE(sender.start("test"));
  sender.span(span(sender, sender.number_of("load")));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(sender.is_on());
  EXPECT_EQ(ring_path(), "");
  const Result<std::string> reason = read_off_reason(ring_path(".test.off"), ::geteuid());
  ASSERT_TRUE(reason.ok()) << reason.error().message;
  EXPECT_EQ(*reason, "ring-allocation: File too large");
}

TEST_F(SenderTest, AFullRingDropsAndCountsAndGoesOnOnceItIsRead) {
  Sender& sender = make_sender();
  ASSERT_TRUE(sender.start("test"));
  // Long names and long spans, which the budget lets through: more than ring and buffer hold.
  std::size_t sent = 0;
  for (; sent < 1'500; ++sent) {
    sender.span(span(sender, sender.number_of(format("{:0500}", sent)), 2'000'000'000));
  }
  const std::uint32_t name = sender.number_of("load");
  constexpr std::size_t kSent = 60'000;
  for (; sent < kSent; ++sent) sender.span(span(sender, name, 2'000'000'000));
  RingReader ring = open_ring();
  Received received;
  ASSERT_TRUE(ring.poll(received).ok());
  EXPECT_LT(received.span_count, kSent);
  EXPECT_GT(received.span_count, 1'000U);

  ::usleep(30'000);  // a full ring is not tried again at once
  for (int i = 0; i < 3; ++i) {
    sender.span(span(sender, name, 2'000'000'000));
    ASSERT_TRUE(ring.poll(received).ok());
  }
  sender.finish();
  ASSERT_TRUE(ring.poll(received).ok());
  EXPECT_TRUE(received.has_ended);
  EXPECT_GT(ring.live().records_dropped, 0U);
  EXPECT_EQ(received.span_count + ring.live().records_dropped + ring.live().spans_left_out, kSent + 3);
  EXPECT_EQ(ring.counters().frames_damaged, 0U);
}

TEST_F(SenderTest, ManyThreadsAndAReaderLoseNothingUncounted) {
  Sender& sender = make_sender();
  ASSERT_TRUE(sender.start("test"));
  constexpr std::size_t kThreads = 8;
  constexpr std::size_t kEach = 5'000;
  sender.span(span(sender, sender.number_of("first")));  // makes the ring
  RingReader ring = open_ring();
  Received received;
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&sender, t] {
        for (std::size_t i = 0; i < kEach; ++i) {
          sender.span(span(sender, sender.number_of(format("thread {} part {}", t, i % 7))));
        }
      });
    }
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(ring.poll(received).ok());
      std::this_thread::yield();
    }
  }
  sender.finish();
  ASSERT_TRUE(ring.poll(received).ok());
  EXPECT_EQ(received.span_count + ring.live().records_dropped + ring.live().spans_left_out, kThreads * kEach + 1);
  EXPECT_EQ(ring.counters().frames_damaged, 0U);
  EXPECT_EQ(ring.counters().records_malformed, 0U);
  double calls = 0;
  for (const auto& [name, value] : received.figures) calls += name.starts_with("range.calls") ? value : 0;
  EXPECT_EQ(static_cast<std::uint64_t>(calls), kThreads * kEach + 1 - ring.live().records_dropped)
      << "calls are complete where spans are left out";
}

TEST_F(SenderTest, BuffersOfThreadsThatHaveEndedAreUsedAgain) {
  Sender& sender = make_sender();
  ASSERT_TRUE(sender.start("test"));
  for (std::size_t i = 0; i < 3 * kObserverThreadsMax; ++i) {
    std::thread([&] { sender.span(span(sender, sender.number_of("once"))); }).join();
  }
  sender.finish();
  RingReader ring = open_ring();
  Received received;
  ASSERT_TRUE(ring.poll(received).ok());
  EXPECT_EQ(received.figures["range.calls once"], static_cast<double>(3 * kObserverThreadsMax));
  EXPECT_EQ(ring.live().records_dropped, 0U);
}

TEST_F(SenderTest, AForkedProcessHasARingOfItsOwn) {
  Sender& sender = make_sender();
  ASSERT_TRUE(sender.start("test"));
  const std::uint32_t name = sender.number_of("before");
  sender.span(span(sender, name));
  sender.span(span(sender, name));  // waits in the buffer: it is the parent's
  const std::string parent_path = ring_path();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    sender.after_fork();
    sender.span(span(sender, name));
    sender.span(span(sender, sender.number_of("after")));
    sender.finish();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  sender.finish();

  Result<RingReader> parents = RingReader::open(parent_path, ::geteuid());
  ASSERT_TRUE(parents.ok());
  Received of_parent;
  ASSERT_TRUE(parents->poll(of_parent).ok());
  EXPECT_EQ(of_parent.spans["before"].size(), 2U);
  EXPECT_EQ(of_parent.span_count, 2U);

  fs::remove(parent_path);
  RingReader childs = open_ring();
  EXPECT_EQ(childs.identity().pid, static_cast<std::uint32_t>(child));
  Received of_child;
  ASSERT_TRUE(childs.poll(of_child).ok());
  EXPECT_EQ(of_child.spans["before"].size(), 1U);
  EXPECT_EQ(of_child.spans["after"].size(), 1U);
  EXPECT_EQ(of_child.figures["range.calls before"], 1);
}

TEST_F(SenderTest, AReaderThatCameLaterHearsTheNamesAgain) {
  Sender& sender = make_sender();
  ASSERT_TRUE(sender.start("test"));
  const std::uint32_t name = sender.number_of("load");
  sender.info("key", "text");
  sender.span(span(sender, name));
  RingReader first = open_ring();
  Received heard;
  ASSERT_TRUE(first.poll(heard).ok());
  ASSERT_EQ(heard.spans["load"].size(), 1U);

  RingReader second = open_ring();
  ASSERT_TRUE(second.was_read_before());
  const Result<std::uint64_t> asked = second.send(HookCommand::kSayAgain, 0);
  ASSERT_TRUE(asked.ok());
  sender.span(span(sender, name));
  sender.finish();
  Received again;
  ASSERT_TRUE(second.poll(again).ok());
  EXPECT_EQ(second.answer().word, *asked);
  EXPECT_EQ(again.spans["load"].size(), 1U);
  EXPECT_EQ(again.infos["key"], "\"text\"");
  EXPECT_EQ(again.figures["range.calls load"], 2);
}

}  // namespace
}  // namespace hotlap
