// Compares what observe/cupti_abi.h says of CUPTI's records, functions and numbers with NVIDIA's headers:
// test_kernels.py compiles it where those are installed, which fails where they differ.
#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_result.h>

#include <type_traits>

#include "observe/cupti_abi.h"

namespace {

using namespace hotlap::cupti;

#define SAME(ours, field, theirs, name) \
  static_assert(offsetof(ours, field) == offsetof(theirs, name) && sizeof(ours::field) == sizeof(theirs::name))

#define SAME_KERNEL(theirs)                               \
  SAME(KernelRecord, head, theirs, kind);                 \
  SAME(KernelRecord, start_ns, theirs, start);            \
  SAME(KernelRecord, end_ns, theirs, end);                \
  SAME(KernelRecord, device, theirs, deviceId);           \
  SAME(KernelRecord, context, theirs, contextId);         \
  SAME(KernelRecord, stream, theirs, streamId);           \
  SAME(KernelRecord, correlation, theirs, correlationId); \
  SAME(KernelRecord, name, theirs, name)

SAME_KERNEL(CUpti_ActivityKernel4);
SAME_KERNEL(CUpti_ActivityKernel5);
SAME_KERNEL(CUpti_ActivityKernel6);
SAME_KERNEL(CUpti_ActivityKernel7);
SAME_KERNEL(CUpti_ActivityKernel8);
SAME_KERNEL(CUpti_ActivityKernel9);
#ifdef HOTLAP_NEWEST_KERNEL
SAME_KERNEL(HOTLAP_NEWEST_KERNEL);
#endif

#define SAME_COPY(ours, theirs)             \
  SAME(ours, head, theirs, kind);           \
  SAME(ours, direction, theirs, copyKind);  \
  SAME(ours, from_memory, theirs, srcKind); \
  SAME(ours, to_memory, theirs, dstKind);   \
  SAME(ours, bytes, theirs, bytes);         \
  SAME(ours, start_ns, theirs, start);      \
  SAME(ours, end_ns, theirs, end);          \
  SAME(ours, device, theirs, deviceId);     \
  SAME(ours, stream, theirs, streamId);     \
  SAME(ours, correlation, theirs, correlationId)

SAME_COPY(CopyRecord, CUpti_ActivityMemcpy);
SAME_COPY(CopyRecord, CUpti_ActivityMemcpy4);
SAME_COPY(CopyRecord, CUpti_ActivityMemcpy5);
SAME_COPY(PeerCopyRecord, CUpti_ActivityMemcpyPtoP);
SAME_COPY(PeerCopyRecord, CUpti_ActivityMemcpyPtoP4);

#define SAME_FILL(theirs)                     \
  SAME(FillRecord, bytes, theirs, bytes);     \
  SAME(FillRecord, start_ns, theirs, start);  \
  SAME(FillRecord, end_ns, theirs, end);      \
  SAME(FillRecord, device, theirs, deviceId); \
  SAME(FillRecord, stream, theirs, streamId); \
  SAME(FillRecord, correlation, theirs, correlationId)

SAME_FILL(CUpti_ActivityMemset);
SAME_FILL(CUpti_ActivityMemset4);

SAME(CallRecord, function, CUpti_ActivityAPI, cbid);
SAME(CallRecord, start_ns, CUpti_ActivityAPI, start);
SAME(CallRecord, end_ns, CUpti_ActivityAPI, end);
SAME(CallRecord, thread, CUpti_ActivityAPI, threadId);
SAME(CallRecord, correlation, CUpti_ActivityAPI, correlationId);

static_assert(static_cast<int>(Kind::kCopy) == CUPTI_ACTIVITY_KIND_MEMCPY);
static_assert(static_cast<int>(Kind::kFill) == CUPTI_ACTIVITY_KIND_MEMSET);
static_assert(static_cast<int>(Kind::kRuntimeCall) == CUPTI_ACTIVITY_KIND_RUNTIME);
static_assert(static_cast<int>(Kind::kKernel) == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(static_cast<int>(Kind::kPeerCopy) == CUPTI_ACTIVITY_KIND_MEMCPY2);
static_assert(kMultipleSubscribers == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
static_assert(kSuccess == static_cast<int>(CUPTI_SUCCESS));
static_assert(kRuntimeDomain == CUPTI_CB_DOMAIN_RUNTIME_API);
static_assert(kFlushForced == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
static_assert(kThreadIdOfSystem == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
static_assert(kBufferAlignment == ACTIVITY_RECORD_ALIGNMENT);
static_assert(CUPTI_ACTIVITY_MEMCPY_KIND_PTOP == 10 && CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC == 7);

// Enumerations are passed as whole numbers, handles as pointers: the same registers in the same order.
static_assert(std::is_same_v<std::underlying_type_t<CUpti_ActivityKind>, std::underlying_type_t<Kind>>);
static_assert(sizeof(CUpti_SubscriberHandle) == sizeof(Subscriber) && sizeof(CUptiResult) == sizeof(Result));
static_assert(std::is_invocable_r_v<CUptiResult, decltype(cuptiActivityFlushAll), std::uint32_t>);
static_assert(std::is_invocable_r_v<CUptiResult, decltype(cuptiGetTimestamp), std::uint64_t*>);
static_assert(std::is_invocable_r_v<CUptiResult, decltype(cuptiActivityGetNextRecord), std::uint8_t*, std::size_t,
                                    CUpti_Activity**>);
static_assert(std::is_invocable_r_v<CUptiResult, decltype(cuptiActivityGetNumDroppedRecords), CUcontext, std::uint32_t,
                                    std::size_t*>);
static_assert(std::is_convertible_v<GiveBuffer, CUpti_BuffersCallbackRequestFunc>);

}  // namespace

int main() { return 0; }
