#include "record/job_tree.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/format.h"

namespace hotlap {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kTicks = 500;  // 5 s after boot

class SteppedClock final : public Clock {
 public:
  std::int64_t mono_ns() const override { return now_ns; }
  ClockReading read() const override { return {now_ns, now_ns + 1, now_ns + 2 * kNsPerS}; }
  bool sleep_until(std::int64_t, int) const override { return true; }
  std::int64_t now_ns = 100 * kNsPerS;
};

// A machine whose /proc is a folder of the test's.
class FolderHost final : public Host {
 public:
  explicit FolderHost(fs::path root) : root_(std::move(root)) {}
  std::string resolve(std::string_view absolute) const override { return root_.native() + std::string(absolute); }
  bool reopens() const override { return true; }
  std::int64_t clock_ticks_per_s() const override { return 100; }

 private:
  fs::path root_;
};

void write_file(const fs::path& path, std::string_view text) {
  fs::create_directories(path.parent_path());
  std::FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

class JobTreeTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / format("hotlap-job-tree-test-{}", ::getpid());
    fs::remove_all(root_);
    fs::create_directories(root_ / "proc/self");
    fs::create_symlink("/opt/hotlap", root_ / "proc/self/exe");
    host_ = std::make_unique<FolderHost>(root_);
    make(1, 0, "init", "/sbin/init");
    make(50, 1, "hotlap", "hotlap run", "/opt/hotlap");
    make(100, 50, "python", "python train.py --token SECRET");
    tree_ = std::make_unique<JobTree>(
        *host_, clock_, JobTreeOptions{.root_pid = 100, .supervisor_pid = 50, .run_id = "RUN", .expects_hook = true});
  }
  void TearDown() override { fs::remove_all(root_); }

  void make(int pid, int parent, std::string_view name, std::string command, std::string_view exe = "/usr/bin/x",
            std::string_view environment = "A=1", std::uint64_t ticks = kTicks) {
    const fs::path folder = root_ / "proc" / std::to_string(pid);
    std::string fields = format("{} ({}) S {}", pid, name, parent);
    for (int field = 5; field < 22; ++field) fields += " 0";
    write_file(folder / "stat", format("{} {} 0 0\n", fields, ticks));
    for (char& c : command) c = c == ' ' ? '\0' : c;
    write_file(folder / "cmdline", command + '\0');
    write_file(folder / "environ", std::string(environment) + '\0');
    fs::remove(folder / "exe");
    fs::create_symlink(exe, folder / "exe");
  }
  void end(int pid) { fs::remove_all(root_ / "proc" / std::to_string(pid)); }

  std::vector<std::string> labels() const {
    std::vector<std::string> all;
    for (const JobProcess& process : tree_->processes()) all.push_back(format("{} {}", process.pid, process.slot));
    return all;
  }
  Batch scan() {
    Batch batch;
    clock_.now_ns += 2 * kNsPerS;
    tree_->update(clock_.now_ns, batch);
    return batch;
  }
  Batch announce(int pid, ProcessRole role, int rank, int worker) {
    Batch batch;
    tree_->announce({.pid = pid, .start_ticks = kTicks, .role = role, .rank = rank, .worker_id = worker}, clock_.now_ns,
                    batch);
    return batch;
  }
  using Labels = std::vector<std::string>;

  fs::path root_;
  SteppedClock clock_;
  std::unique_ptr<FolderHost> host_;
  std::unique_ptr<JobTree> tree_;
};

TEST_F(JobTreeTest, FindsDescendantsOrphansAndMarkedOnesButNotOurOwn) {
  make(101, 100, "a) (b", "python -c x");
  make(90, 101, "late", "wrapped pid");                        // a smaller number than its parent's
  make(102, 50, "orphan", "daemon");                           // reparented to the supervisor
  make(103, 50, "hotlap", "hotlap _recorder", "/opt/hotlap");  // ours
  make(104, 1, "escaped", "other", "/usr/bin/x", std::string_view("B=2\0HOTLAP_RUN_ID=RUN", 21));  // other session
  make(105, 104, "child", "of the escaped");
  make(106, 1, "foreign", "other", "/usr/bin/x", std::string_view("HOTLAP_RUN_ID=RUNNER", 20));
  const Batch batch = scan();
  EXPECT_EQ(labels().size(), 6U);
  for (const JobProcess& process : tree_->processes()) {
    EXPECT_TRUE(process.pid != 50 && process.pid != 103 && process.pid != 106 && process.pid != 1) << process.pid;
  }
  ASSERT_FALSE(batch.processes.empty());
  const ProcessInfo& main = batch.processes[0];
  EXPECT_EQ(slot_label(main), "main");
  EXPECT_EQ(main.role, ProcessRole::kMain);
  EXPECT_EQ(main.command, "python train.py --token ***");
  EXPECT_EQ(main.start_ns, 3 * kNsPerS);  // 5 s after boot, of which the machine slept 2
  EXPECT_EQ(batch.processes[1].parent, main.slot);
}

TEST_F(JobTreeTest, ASlotOutlivesItsProcess) {
  make(101, 100, "w", "python w");
  scan();
  const Batch first = announce(101, ProcessRole::kLoader, -1, 0);
  EXPECT_EQ(labels(), (Labels{"100 main", "101 loader 0"}));
  const std::uint32_t slot = first.processes.back().slot;

  end(101);
  const Batch ended = scan();
  ASSERT_EQ(ended.processes.size(), 1U);
  EXPECT_EQ(ended.processes[0].end_ns, clock_.now_ns);

  make(102, 100, "w", "python w");  // the next epoch's
  scan();
  const Batch second = announce(102, ProcessRole::kLoader, -1, 0);
  EXPECT_EQ(second.processes.back().slot, slot);
  EXPECT_EQ(labels(), (Labels{"100 main", "102 loader 0"}));
  // What it was taken for before its ring spoke is nobody's any more.
  EXPECT_EQ(second.processes.front().pid, 0);
  EXPECT_EQ(second.processes.front().label, "other 1");
}

TEST_F(JobTreeTest, LabelsAreUniqueAmongTheLiving) {
  for (const int pid : {101, 102, 103, 104}) make(pid, 100, "w", "python w");
  scan();
  announce(101, ProcessRole::kLoader, -1, 0);
  announce(102, ProcessRole::kLoader, -1, 0);  // of a second loader
  announce(103, ProcessRole::kLoader, 1, 0);
  announce(104, ProcessRole::kRank, 1, -1);
  EXPECT_EQ(labels(), (Labels{"100 main", "101 loader 0", "102 loader 0 (2)", "103 rank 1 loader 0", "104 rank 1"}));
}

TEST_F(JobTreeTest, AProcessInAPidNamespaceIsFoundByWhatItTakesForItsPid) {
  scan();
  make(101, 100, "unshare", "unshare -pf python x");
  make(102, 101, "python", "python x");
  write_file(root_ / "proc/101/status", "Name:\tunshare\nNSpid:\t101\n");
  write_file(root_ / "proc/102/status", "Name:\tNSpid:\nNSpid:\t102\t1\nx:\t7\n");
  Batch batch;
  EXPECT_EQ(tree_->pid_seen_here(1, kTicks + 1, clock_.now_ns, batch), 1);  // another start
  clock_.now_ns += 2 * kNsPerS;
  EXPECT_EQ(tree_->pid_seen_here(7, kTicks, clock_.now_ns, batch), 7);
  EXPECT_EQ(tree_->pid_seen_here(102, kTicks, clock_.now_ns, batch), 102);
  end(1);
  EXPECT_EQ(tree_->pid_seen_here(1, kTicks, clock_.now_ns, batch), 102);
}

TEST_F(JobTreeTest, AZombieHasEnded) {
  make(101, 100, "w", "python w");
  scan();
  EXPECT_TRUE(tree_->is_alive(101, kTicks));
  std::string stat = "101 (w) Z 100";
  for (int field = 5; field < 22; ++field) stat += " 0";
  write_file(root_ / "proc/101/stat", format("{} {} 0 0\n", stat, kTicks));
  EXPECT_FALSE(tree_->is_alive(101, kTicks));
  scan();
  EXPECT_EQ(labels(), (Labels{"100 main"}));
}

TEST_F(JobTreeTest, APidThatIsUsedAgainIsAnotherProcess) {
  make(101, 100, "w", "python w");
  scan();
  Batch batch;
  tree_->announce({.pid = 101, .start_ticks = kTicks + 7, .role = ProcessRole::kLoader, .worker_id = 4}, clock_.now_ns,
                  batch);
  EXPECT_EQ(labels(), (Labels{"100 main", "101 loader 4"}));
  EXPECT_FALSE(tree_->is_alive(101, kTicks));
}

TEST_F(JobTreeTest, APidThatIsUsedAgainBetweenTwoScansIsAnotherProcess) {
  make(101, 100, "child", "theirs");
  make(102, 100, "child", "theirs too");
  make(103, 1, "foreign", "nobody's");
  write_file(root_ / "proc/loadavg", "0.1 0.1 0.1 1/6 103\n");
  scan();
  EXPECT_EQ(labels(), (Labels{"100 main", "101 other 1", "102 other 2"}));
  make(101, 1, "foreign", "not theirs", "/usr/bin/x", "A=1", kTicks + 1);
  make(102, 100, "child", "theirs again", "/usr/bin/x", "A=1", kTicks + 1);
  make(103, 100, "child", "theirs now", "/usr/bin/x", "A=1", kTicks + 1);
  write_file(root_ / "proc/loadavg", "0.1 0.1 0.1 1/6 110\n");  // a whole turn of the numbers: not to be seen
  EXPECT_EQ(scan().processes.size(), 3U);                       // the ends of two, and one that is new
  EXPECT_EQ(labels(), (Labels{"100 main", "102 other 1"}));
}

TEST_F(JobTreeTest, AForeignPidThatTheKernelHasGivenAnewIsLookedAtAgain) {
  struct Turn {
    int before, after;
    bool is_seen;
  };
  for (const Turn turn : {Turn{102, 103, true}, Turn{102, 120, true}, Turn{4'000, 103, true}, Turn{4'000, 102, false},
                          Turn{103, 120, false}, Turn{50, 102, false}}) {
    SetUp();
    make(103, 1, "foreign", "nobody's");
    write_file(root_ / "proc/loadavg", format("0.1 0.1 0.1 1/4 {}\n", turn.before));
    scan();
    EXPECT_EQ(labels(), Labels{"100 main"});
    make(103, 100, "child", "theirs", "/usr/bin/x", "A=1", kTicks + 1);
    write_file(root_ / "proc/loadavg", format("0.1 0.1 0.1 1/5 {}\n", turn.after));
    scan();
    EXPECT_EQ(labels().size(), turn.is_seen ? 2U : 1U) << turn.before << " " << turn.after;
  }
}

TEST_F(JobTreeTest, SaysWhyAPythonProcessHasNoHook) {
  make(101, 100, "p", "python3 -I w.py");
  make(102, 100, "p", "/usr/bin/python3 w.py");
  make(103, 100, "p", "python3 w.py", "/usr/bin/x", std::string_view("HOTLAP_RING_DIR=/r\0PYTHONPATH=/mine", 35));
  make(104, 100, "p", "bash w.sh");
  make(106, 100, "p", "python w.py", "/opt/bin/python2.7",
       std::string_view("HOTLAP_RING_DIR=/r\0PYTHONPATH=/_bootstrap", 42));
  scan();
  Batch seen;
  tree_->hook_seen(100, kTicks, clock_.now_ns, seen);
  EXPECT_TRUE(seen.processes.back().has_hook);
  std::map<int, std::string> reasons;
  for (int i = 0; i < 3; ++i) {
    const Batch later = scan();
    for (const ProcessInfo& process : later.processes) {
      reasons[process.pid] = process.hook_absent_reason;
    }
  }
  const std::string wheel = "; hotlap's wheel, installed in this Python, works all the same";
  EXPECT_EQ(reasons, (std::map<int, std::string>{{101, "python -I ignores PYTHONPATH" + wheel},
                                                 {102, "it was started with another environment"},
                                                 {103, "PYTHONPATH was replaced" + wheel},
                                                 {106, "Python 2.7 is older than 3.8"}}));
}

// Its options are known from its first look; its environment is gone with it.
TEST_F(JobTreeTest, AShortPythonProcessHasAReasonToo) {
  make(101, 100, "p", "python3 -W error -S w.py");
  make(102, 100, "p", "/usr/bin/python3 w.py");
  make(103, 100, "p", "python3 -uIm work --Size S");
  make(104, 100, "p", "python3 -m work -S");
  make(105, 100, "p", "bash w.sh");
  scan();
  for (int pid = 101; pid <= 105; ++pid) end(pid);
  std::map<int, std::string> reasons;
  for (const ProcessInfo& process : scan().processes) reasons[process.pid] = process.hook_absent_reason;
  const std::string unknown = "it ended before the reason could be looked up";
  EXPECT_EQ(reasons,
            (std::map<int, std::string>{
                {101, "python -S reads neither sitecustomize nor .pth files"},
                {102, unknown},
                {103, "python -I ignores PYTHONPATH; hotlap's wheel, installed in this Python, works all the same"},
                {104, unknown},
                {105, ""}}));
}

TEST_F(JobTreeTest, NothingIsListedWhileTheKernelSaysThatNothingChanged) {
  write_file(root_ / "proc/loadavg", "0.1 0.2 0.3 1/200 5000\n");
  for (int i = 0; i < 4; ++i) scan();
  make(101, 100, "w", "python w");
  scan();
  EXPECT_EQ(labels(), (Labels{"100 main"}));
  write_file(root_ / "proc/loadavg", "0.1 0.2 0.3 1/201 5001\n");
  scan();
  EXPECT_EQ(labels(), (Labels{"100 main", "101 other 1"}));
}

TEST_F(JobTreeTest, BeyondTheBoundProcessesAreRefusedAndCounted) {
  tree_ = std::make_unique<JobTree>(*host_, clock_, JobTreeOptions{.root_pid = 100, .processes_max = 2});
  for (const int pid : {101, 102, 103}) make(pid, 100, "w", "python w");
  const Batch batch = scan();
  EXPECT_EQ(tree_->processes().size(), 2U);
  ASSERT_EQ(batch.losses.size(), 2U);
  EXPECT_EQ(batch.losses[0].counter, "record.processes_refused");
}

TEST_F(JobTreeTest, TheEndOfTheMainProcessSaysHow) {
  scan();
  Batch batch;
  tree_->finish(clock_.now_ns, "signal 9", batch);
  ASSERT_EQ(batch.events.size(), 1U);
  EXPECT_EQ(batch.events[0].kind, EventKind::kProcessEnd);
  EXPECT_EQ(batch.events[0].text, "signal 9");
}

}  // namespace
}  // namespace hotlap
