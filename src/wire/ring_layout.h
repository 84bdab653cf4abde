#pragma once
// The shared ring between the hook in a Python process (writer) and the recorder (reader): one file per process. This
// header is the contract; python/src/hotlap/_wire.py mirrors it and tests/golden/wire holds both sides to it. A native
// observer in the same process (src/observe) has a ring of its own, of the same layout.
//
//   <ring dir>/<pid>-<start ticks>.ring   the ring; made as `.ring.new`, renamed once its first page is complete
//   <ring dir>/<pid>-<start ticks>.<source>.ring   that of a native observer; the source is a word of a to z: "nvtx"
//   <ring dir>/<pid>-<start ticks>.<source>.off    the observer records nothing in this process, and why
//   <ring dir>/<pid>-<start ticks>.on     empty: the hook is loaded here; a ring follows with the first record
//   <ring dir>/<pid>-<start ticks>.off    no ring in this process; one line of UTF-8 says why, "<code>: <detail>", with
//                                         code ring-allocation, ring-folder, name-taken or hook-failed; <= 4 KiB
//   The folder is 0700 and the writer's own; `start ticks` is field 22 of /proc/<pid>/stat, so that a pid used twice is
//   told apart. The file is allocated whole (posix_fallocate), never sparse: a disk that fills up later cannot kill the
//   writer.
//
//   byte 0      256        512        640        1024       1152      4096                             end of file
//   +-----------+----------+----------+----------+----------+---------+------------------------------------+
//   | identity  | live     | command  | answer   | head     | tail    | data: data_bytes, a multiple of 8  |
//   | by writer | by writer| by reader| by writer| by writer| by reader by writer                          |
//   +-----------+----------+----------+----------+----------+---------+------------------------------------+
//
//   head and tail are byte positions that only grow; position p lies at data[p % data_bytes]; head - tail bytes
//   are unread. The writer stores a frame, then publishes it with one aligned 8-byte store of head. A frame:
//
//   +----------------+------------+--------------------------+---------------------+---------------------+
//   | u32 payload    | u32 crc32  | u64 sequence, from 0,    | payload: records,   | zeros to the next   |
//   | bytes, 1 …     |            | one more for each frame  | each a multiple of 8| multiple of 8       |
//   +----------------+------------+--------------------------+---------------------+---------------------+
//
//   crc32 is zlib's, over the payload, started with the low 32 bits of the sequence: what an earlier lap left
//   behind never passes for a frame. A frame does not wrap: when it does not fit before the end of data, the
//   writer puts a u32 0xFFFFFFFF (pad) there, if there is room for it, and starts at data[0]. A writer whose frame
//   does not fit between head and tail drops the frame and counts its records.
//
//   A record: u8 type, u8 flags, u16 size in bytes with this head and padding. Readers skip types they do not know
//   by size.
//
// Neither side trusts the other: the reader checks every length and checksum, the writer every tail. Integers are
// little-endian. A field of -1 is missing. Versions: 1 = this text.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hotlap {

inline constexpr std::string_view kRingMagic = "HOTLAPRG";
inline constexpr std::uint32_t kRingLayoutVersion = 1;
inline constexpr std::size_t kRingPageBytes = 4096;
inline constexpr std::uint64_t kRingDataBytesMin = 4096;
inline constexpr std::uint64_t kRingDataBytesMax = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kRingFileBytesDefault = std::uint64_t{1} << 20;
inline constexpr std::size_t kRingFramePayloadMax = 60 * 1024;
inline constexpr std::uint32_t kRingPad = 0xFFFFFFFFU;
inline constexpr std::string_view kRingSuffix = ".ring";
inline constexpr std::string_view kRingOnSuffix = ".on";
inline constexpr std::string_view kRingOffSuffix = ".off";
inline constexpr std::size_t kRingOffTextMax = 4096;
inline constexpr std::size_t kRingSourceMax = 16;

struct RingIdentity {
  char magic[8];
  std::uint32_t layout_version;
  std::uint32_t page_bytes;  // where data begins
  std::uint64_t data_bytes;
  std::uint32_t uid;  // effective user of the writer
  std::uint32_t pid;
  std::uint64_t start_ticks;
  std::uint32_t parent_pid;
  std::uint32_t writer_kind;     // 1: python hook, 2: native
  std::int64_t created_mono_ns;  // CLOCK_MONOTONIC
  std::int64_t created_boot_ns;  // CLOCK_BOOTTIME
  char run_id[32];               // ULID, then zeros
  // These may change later, with a kProcess record: a rank is often known only when the process group is made.
  std::int32_t role;  // ProcessRole of model/process.h
  std::int32_t rank;
  std::int32_t local_rank;
  std::int32_t world_size;
  std::int32_t worker_id;  // loader worker
  std::int32_t attempt;    // restarts by the launcher, from 0
};

// Each field is stored whole and on its own; together they are a snapshot only when the writer rests.
struct RingLive {
  std::int64_t phase;                // Phase of model/event.h
  std::int64_t step;                 // index of the last step that ended; -1: none yet
  std::int64_t step_end_ns;          // when it ended
  std::int64_t collective_group;     // of the collective that is entered and not left: 0 the default group; -1: none
  std::int64_t collective_sequence;  // its number in its group, from 0, or that of the one left last; -1: none yet
  std::uint64_t records_sent;
  std::uint64_t records_dropped;  // ring full or a bound of ours
  std::uint64_t frames_dropped;
  std::uint64_t parts_shed;  // bit set of what the hook no longer does to stay cheap (HookPart)
  std::int64_t own_time_ns;  // the hook's time in this process so far
  std::uint64_t closed;      // 1: the process ended in order
  std::uint64_t errors;      // exceptions of the hook's own, swallowed
  std::uint64_t
      names_refused;  // names asked for beyond the hook's bound: their spans have none, their counts are left out
  std::uint64_t spans_left_out;  // short spans that a native writer only counted, to bound how much is kept
};

struct RingCommand {
  std::uint64_t word;  // request id << 16 | HookCommand; the argument is stored first
  std::uint64_t argument;
};

struct RingAnswer {
  std::uint64_t word;    // the command word that was carried out (or refused)
  std::uint64_t result;  // HookAnswer
};

// Of the counts in RingLive, what readers have told so far: a recorder that was started again tells only what is new.
struct RingTold {
  std::uint64_t records_dropped;
  std::uint64_t errors;
  std::uint64_t names_refused;
  std::uint64_t spans_left_out;
};

struct RingPage {
  RingIdentity identity;
  alignas(256) RingLive live;
  alignas(512) RingCommand command;
  alignas(128) RingAnswer answer;
  alignas(1024) std::uint64_t head;
  alignas(128) std::uint64_t tail;
  RingTold told;  // by reader
  alignas(8) std::byte reserved[kRingPageBytes - 1192];
};

struct RingFrameHead {
  std::uint32_t payload_bytes;
  std::uint32_t crc;
  std::uint64_t sequence;
};

// Numbers of commands, answers and parts: append only.
enum class HookCommand : std::uint16_t {
  kNone = 0,
  kOff = 1,
  kOn = 2,
  kProfile = 3,
  kPing = 4,
  kSayAgain = 5  // all NAME and INFO records: for a reader that was not there when they were written
};
enum class HookAnswer : std::uint64_t { kDone = 0, kUnknown = 1, kUnsupported = 2, kFailed = 3 };
enum class HookPart : std::uint64_t {
  kQueueDepth = 1 << 0,
  kBatchContent = 1 << 1,  // bytes and tokens of a batch
  kGarbage = 1 << 2,
  kPhases = 1 << 3,         // forward, backward, optimizer
  kWorkerParts = 1 << 4,    // fetch and collate apart
  kEachStepFlush = 1 << 5,  // records leave in larger lots
  kEachDetail = 1 << 6,     // small steps: parts are seen in some of the steps, not in each
  kCollectives = 1 << 7,    // spans of calls of torch.distributed; they are still counted in page 0
  kDevice = 1 << 8,         // allocator, GPU times, settings, the reducer's times
};

// Append only, like the layouts below.
enum class RecordType : std::uint8_t {
  kSpan = 1,
  kName = 2,
  kInfo = 3,
  kCount = 4,
  kPhase = 5,
  kProcess = 6,
  kEnd = 7
};

struct RecordHead {
  std::uint8_t type;
  std::uint8_t flags;
  std::uint16_t size;
};

// Flags of a kStep span.
inline constexpr std::uint8_t kStepSourceMask = 0x03;
inline constexpr std::uint8_t kStepByOptimizer = 1;
inline constexpr std::uint8_t kStepByLoader = 2;    // no optimizer: one batch, one step
inline constexpr std::uint8_t kStepByProgram = 3;   // hotlap.step()
inline constexpr std::uint8_t kStepSkipped = 0x04;  // the gradient scaler skipped the update
// Flag of a kDataWait span: not the loader's next() but the gap before forward, because the loader is unknown.
inline constexpr std::uint8_t kWaitBeforeForward = 0x01;
// Flag of a kCount record: one of the hook's own metrics; its name is the metric's, and after a space what it is about.
inline constexpr std::uint8_t kCountOfHook = 0x01;

struct SpanRecord {
  RecordHead head;
  std::uint16_t kind;  // SpanKind
  std::uint16_t reserved;
  std::int64_t start_ns;
  std::int64_t duration_ns;
  std::uint32_t thread;
  std::uint32_t name;
  std::int64_t step;
  std::int64_t value_a;
  std::int64_t value_b;
};

struct NameRecord {  // then text_bytes of UTF-8, then zeros
  RecordHead head;
  std::uint32_t id;  // of this process, from 1; announced before its first use
  std::uint16_t text_bytes;
  std::uint16_t reserved[3];
};

struct InfoRecord {  // then the key, then one JSON value, then zeros
  RecordHead head;
  std::uint16_t key_bytes;
  std::uint16_t json_bytes;
  std::int64_t t_ns;
};

struct CountRecord {
  RecordHead head;
  std::uint32_t name;
  std::int64_t t_ns;
  double value;
  std::int64_t step;
};

struct PhaseRecord {
  RecordHead head;
  std::uint32_t phase;
  std::int64_t t_ns;  // when it began; may lie before records already sent
  std::int64_t step;
};

struct ProcessRecord {
  RecordHead head;
  std::int32_t role;
  std::int64_t t_ns;
  std::int32_t rank;
  std::int32_t local_rank;
  std::int32_t world_size;
  std::int32_t worker_id;
  std::int32_t attempt;
  std::uint32_t pid;
  std::uint32_t parent_pid;
  std::uint32_t reserved;
};

struct EndRecord {
  RecordHead head;
  std::uint32_t reason;  // 0: the interpreter ends
  std::int64_t t_ns;
};

static_assert(offsetof(RingIdentity, data_bytes) == 16 && offsetof(RingIdentity, start_ticks) == 32);
static_assert(offsetof(RingIdentity, created_mono_ns) == 48 && offsetof(RingIdentity, run_id) == 64);
static_assert(offsetof(RingIdentity, role) == 96 && sizeof(RingIdentity) == 120);
static_assert(offsetof(RingLive, records_sent) == 40 && offsetof(RingLive, own_time_ns) == 72 &&
              offsetof(RingLive, spans_left_out) == 104 && sizeof(RingLive) == 112);
static_assert(offsetof(RingPage, live) == 256 && offsetof(RingPage, command) == 512);
static_assert(offsetof(RingPage, answer) == 640 && offsetof(RingPage, head) == 1024 &&
              offsetof(RingPage, tail) == 1152);
static_assert(offsetof(RingPage, told) == 1160 && offsetof(RingPage, reserved) == 1192 &&
              sizeof(RingPage) == kRingPageBytes);
static_assert(sizeof(RingFrameHead) == 16 && sizeof(RecordHead) == 4);
static_assert(sizeof(SpanRecord) == 56 && offsetof(SpanRecord, thread) == 24 && offsetof(SpanRecord, value_a) == 40);
static_assert(sizeof(NameRecord) == 16 && sizeof(InfoRecord) == 16 && offsetof(InfoRecord, t_ns) == 8);
static_assert(sizeof(CountRecord) == 32 && sizeof(PhaseRecord) == 24 && sizeof(EndRecord) == 16);
static_assert(sizeof(ProcessRecord) == 48 && offsetof(ProcessRecord, pid) == 36);

// Space that a frame takes in the data area.
constexpr std::uint64_t ring_frame_bytes(std::uint64_t payload_bytes) {
  return (sizeof(RingFrameHead) + payload_bytes + 7) & ~std::uint64_t{7};
}

}  // namespace hotlap
