#include "ingest/log_messages.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace hotlap {
namespace {

std::string all(LogMessages& messages) {
  std::string out;
  for (const Event& event : messages.events()) {
    out += format("{} {}\n", event.value, event.text);
  }
  return out;
}

std::string of(std::initializer_list<std::string_view> lines) {
  LogMessages messages;
  for (const std::string_view line : lines) messages.take(line, -1);
  return all(messages);
}

TEST(LogMessages, OutOfMemoryNewForm) {
  EXPECT_EQ(
      of({"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of "
          "80.00 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 79.00 GiB memory in "
          "use. Of the allocated memory 75.00 GiB is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch "
          "but unallocated."}),
      "-1 out_of_memory ask=2147483648 total=85899345920 free=1073741824 allocated=80530636800 gap=536870912 "
      "process=84825604096 gpu=1\n");
}

TEST(LogMessages, OutOfMemoryOldForm) {
  EXPECT_EQ(
      of({"RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 4.00 GiB total capacity; 1.00 GiB "
          "already allocated; 0 bytes free; 3.00 GiB reserved in total by PyTorch)"}),
      "-1 out_of_memory ask=20971520 total=4294967296 free=0 allocated=1073741824 gap=2147483648 gpu=0\n");
}

TEST(LogMessages, WatchdogLine) {
  EXPECT_EQ(
      of({"[E ProcessGroupNCCL.cpp:563] [Rank 3] Watchdog caught collective operation timeout: "
          "WorkNCCL(SeqNum=64088, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, Timeout(ms)=1800000) ran for 1800253 "
          "milliseconds before timing out."}),
      "3 collective_timeout seq=64088 op=ALLREDUCE numel_in=64 numel_out=64 timeout_ms=1800000 ran_ms=1800253\n");
  EXPECT_EQ(of({"[PG ID 0 PG GUID 0(default_pg) Rank 1] Timeout at NCCL work: 12, last enqueued NCCL work: 20, last "
                "completed NCCL work: 11."}),
            "1 collective_timeout group=0 seq=12 enqueued=20 completed=11\n");
}

TEST(LogMessages, HorovodStallInBothSpellings) {
  EXPECT_EQ(
      of({"Stalled ops:", "HorovodAllreduce_grad_0 [missing ranks: 1, 3]", "HorovodBroadcast_x [ready ranks: 0]"}),
      "-1 collective_stall missing=1,3 tensor=HorovodAllreduce_grad_0\n"
      "-1 collective_stall ready=0 tensor=HorovodBroadcast_x\n");
  EXPECT_EQ(of({"Missing ranks:", "[1,0]<stderr>:2: [allreduce.a, allreduce.b ...]", "3: [allreduce.a]", "step 1"}),
            "-1 collective_stall missing=2 tensor=allreduce.a\n-1 collective_stall missing=3 tensor=allreduce.a\n");
}

TEST(LogMessages, TransportIsToldOnce) {
  EXPECT_EQ(
      of({"h:1:2 [0] NCCL INFO NET/IB : No device found.", "h:1:2 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>",
          "h:1:2 [0] NCCL INFO Using network Socket", "h:1:2 [0] NCCL INFO Using network Socket"}),
      "-1 transport nccl=ib found=0\n-1 transport nccl=socket found=1 device=eth0\n"
      "-1 transport nccl=socket used=1\n");
}

TEST(LogMessages, AChannelOverANetworkIsMoreThanItsName) {
  EXPECT_EQ(of({"h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
                "h:1:2 [0] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/Socket/0"}),
            "-1 transport nccl=p2p used=1\n-1 transport nccl=socket used=1 channel=1\n");
}

TEST(LogMessages, OtherLinesAreNone) {
  LogMessages messages;
  EXPECT_FALSE(messages.take("step 5 loss 2.1", -1));
  EXPECT_FALSE(messages.take("the model is out of memory of its past", -1));
  EXPECT_FALSE(messages.take("", -1));
  EXPECT_TRUE(messages.take("Saving checkpoint to /tmp/a.pt", 2));
  EXPECT_EQ(all(messages), "2 checkpoint_saved begin=1\n");
}

TEST(LogMessages, FailureIsTheFirstLineThatSaysACause) {
  const auto failure = [](std::initializer_list<std::string_view> lines) {
    LogMessages messages;
    for (const std::string_view line : lines) messages.take(line, -1);
    const auto event = messages.failure();
    EXPECT_FALSE(messages.failure());
    return event ? event->text : std::string();
  };
  EXPECT_EQ(failure({"Traceback (most recent call last):", "  raise x", "ValueError: bad shape", "KeyError: 'a'"}),
            "failure kind=other text=ValueError: bad shape");
  EXPECT_EQ(failure({"Traceback (most recent call last):"}), "failure kind=other text=");
  EXPECT_EQ(failure({"ERROR: Unexpected bus error encountered in worker. (shm)", "RuntimeError: worker exited"}),
            "failure kind=shared_memory text=ERROR: Unexpected bus error encountered in worker. (shm)");
  EXPECT_EQ(failure({"RuntimeError: x", "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed."}),
            "failure kind=worker_killed text=RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.");
  EXPECT_EQ(failure({"RuntimeError: CUDA error: an illegal memory access was encountered"}),
            "failure kind=gpu text=RuntimeError: CUDA error: an illegal memory access was encountered");
  EXPECT_EQ(failure({"the RMSError was 0.5", "no Error here", "step 5 loss 2.1"}), "");
}

TEST(LogMessages, EvaluationsThatBegin) {
  EXPECT_EQ(of({"***** Running Evaluation *****", "Start inference on 50 batches", "running on 8 GPUs"}),
            "-1 evaluation_begun begin=1\n-1 evaluation_begun begin=1\n");
}

TEST(LogMessages, SizeOfTheJob) {
  LogMessages messages;
  messages.take("comm 0x1 rank 0 nranks 16 cudaDev 0", -1);
  EXPECT_EQ(messages.world_size(), 16);
}

}  // namespace
}  // namespace hotlap
