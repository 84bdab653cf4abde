// libhotlap_nvtx.so: what a program says by NVTX (ranges, marks) goes into the recording. The program's own copy of
// NVTX loads it because NVTX_INJECTION64_PATH names it, at its first call, and once for each library that has a copy.
//
// Everything here runs in the job's threads, is called through C, and may not fail: it sees less instead.
#include <pthread.h>
#include <string.h>

#include <cstdlib>
#include <limits>

#include "observe/nvtx_abi.h"
#include "observe/open_ranges.h"
#include "observe/sender.h"
#include "observe/utf8_text.h"

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    hotlap::nvtx::GetExportTable get_export_table);

namespace hotlap::nvtx {
namespace {

constexpr std::uint32_t kDomainsMax = 256;
constexpr std::size_t kDomainNameMax = 120;
constexpr std::uintptr_t kNameless = NameTable::kNamesMax + 1;  // a registered string that found no room

struct DomainPlace {
  std::uint32_t is_ready;
  std::uint32_t bytes;
  char name[kDomainNameMax];
};

// Zeroed memory, all of it, and nothing runs before or after main.
Sender sender;
RangeTable started;
DomainPlace domains[kDomainsMax];  // the first is the default one
std::uint32_t domains_used;
std::uint32_t has_handlers;
thread_local RangeStack pushed;

std::string_view text_of(const char* text) {
  return text == nullptr ? std::string_view() : std::string_view(text, ::strnlen(text, kObserverNameBytesMax));
}

std::string_view name_of(const DomainPlace& domain) { return {domain.name, domain.bytes}; }

std::uint32_t index_of(Domain domain) {
  const auto* place = static_cast<const DomainPlace*>(domain);
  return place >= domains && place < domains + kDomainsMax ? static_cast<std::uint32_t>(place - domains) : 0;
}

// "message", in a domain of its own "domain:message".
std::uint32_t number_of(std::uint32_t domain, std::string_view message) {
  if (domain == 0) return sender.number_of(message);
  Utf8Text text;
  return sender.number_of(text.add(name_of(domains[domain])).add(":").add(message).view());
}

std::uint32_t number_of(std::uint32_t domain, const wchar_t* message) {
  Utf8Text text;
  if (domain != 0) text.add(name_of(domains[domain])).add(":");
  if (message != nullptr) text.add(message);
  return sender.number_of(text.view());
}

std::uint32_t number_of(std::uint32_t domain, const char* message) { return number_of(domain, text_of(message)); }

std::int64_t payload_of(const EventAttributes& attributes) {
  switch (attributes.payload_type) {
    case kPayloadUint64:
      return attributes.payload.uint64 <= std::numeric_limits<std::int64_t>::max()
                 ? static_cast<std::int64_t>(attributes.payload.uint64)
                 : -1;
    case kPayloadInt64: return attributes.payload.int64;
    case kPayloadUint32: return attributes.payload.uint32;
    case kPayloadInt32: return attributes.payload.int32;
    default: return -1;
  }
}

OpenRange described(std::uint32_t domain, const EventAttributes* attributes) {
  OpenRange range{};
  range.domain = domain;
  range.payload = range.category = -1;
  if (attributes == nullptr || attributes->size < sizeof(EventAttributes)) return range;
  range.payload = payload_of(*attributes);
  if (attributes->category != 0) range.category = attributes->category;
  switch (attributes->message_type) {
    case kMessageAscii: range.name = number_of(domain, attributes->message.ascii); break;
    case kMessageUnicode: range.name = number_of(domain, attributes->message.unicode); break;
    case kMessageRegistered: {
      const auto number = reinterpret_cast<std::uintptr_t>(attributes->message.registered);
      range.name = number < kNameless ? static_cast<std::uint32_t>(number) : 0;
      break;
    }
    default: break;
  }
  return range;
}

template <class Text>
OpenRange named(const Text* text) {
  OpenRange range{};
  range.payload = range.category = -1;
  range.name = number_of(0, text);
  return range;
}

void send(const OpenRange& range, std::int64_t end_ns) {
  sender.span({.start_ns = range.start_ns,
               .duration_ns = end_ns - range.start_ns,
               .value_a = range.payload,
               .value_b = range.category,
               .name = range.name,
               .thread = range.thread,
               .kind = SpanKind::kUser,
               .is_total = false,
               .flags = 0,
               .weight = 1});
}

void mark(OpenRange range) {
  if (!sender.is_on()) return;
  range.thread = sender.thread();
  range.start_ns = observer_now_ns();
  send(range, range.start_ns);
}

int push(OpenRange range) {
  if (!sender.is_on()) return kNotTracked;
  range.thread = sender.thread();
  range.start_ns = observer_now_ns();
  const std::int32_t depth = pushed.push(range);
  if (depth < 0) sender.count_drop();
  return depth < 0 ? kNotTracked : depth;
}

int pop(std::uint32_t domain) {
  const std::int64_t end_ns = observer_now_ns();
  OpenRange range{};
  if (!pushed.pop(domain, range)) return kNotTracked;
  send(range, end_ns);
  return range.depth;
}

RangeId start(OpenRange range) {
  if (!sender.is_on()) return 0;
  range.thread = sender.thread();
  range.start_ns = observer_now_ns();
  const RangeId id = started.start(range);
  if (id == 0) sender.count_drop();
  return id;
}

void end(RangeId id) {
  const std::int64_t end_ns = observer_now_ns();
  OpenRange range{};
  if (started.end(id, range)) send(range, end_ns);
}

template <class Text>
void name_category(std::uint32_t domain, std::uint32_t category, const Text* name) {
  Utf8Text key;
  key.add("nvtx.category.");
  if (domain != 0) key.add(name_of(domains[domain])).add(".");
  Utf8Text text;
  if (name != nullptr) text.add(name);
  sender.info(key.add(std::uint64_t{category}).view(), text.view());
}

template <class Text>
void name_thread(std::uint32_t thread, const Text* name) {
  Utf8Text key;
  Utf8Text text;
  if (name != nullptr) text.add(name);
  sender.info(key.add("nvtx.thread.").add(std::uint64_t{thread}).view(), text.view());
}

// The same name gives the same domain.
Domain create_domain(std::string_view name) {
  name = cut_utf8(name, kDomainNameMax);
  for (std::uint32_t i = 1; i < kDomainsMax && load_word(domains[i].is_ready) != 0; ++i) {
    if (name_of(domains[i]) == name) return &domains[i];
  }
  const std::uint32_t index = 1 + add_word<std::uint32_t>(domains_used, 1);
  if (index >= kDomainsMax) {
    store_word(domains_used, kDomainsMax);
    return &domains[0];
  }
  DomainPlace& place = domains[index];
  ::memcpy(place.name, name.data(), name.size());
  place.bytes = static_cast<std::uint32_t>(name.size());
  store_word<std::uint32_t>(place.is_ready, 1);
  return &place;
}

template <class Text>
RegisteredString register_string(Domain domain, const Text* text) {
  const std::uint32_t number = number_of(index_of(domain), text);
  return reinterpret_cast<RegisteredString>(number == 0 ? kNameless : std::uintptr_t{number});
}

void mark_ex(const EventAttributes* attributes) { mark(described(0, attributes)); }
void mark_ascii(const char* text) { mark(named(text)); }
void mark_unicode(const wchar_t* text) { mark(named(text)); }
RangeId start_ex(const EventAttributes* attributes) { return start(described(0, attributes)); }
RangeId start_ascii(const char* text) { return start(named(text)); }
RangeId start_unicode(const wchar_t* text) { return start(named(text)); }
int push_ex(const EventAttributes* attributes) { return push(described(0, attributes)); }
int push_ascii(const char* text) { return push(named(text)); }
int push_unicode(const wchar_t* text) { return push(named(text)); }
int pop_default() { return pop(0); }
void category_ascii(std::uint32_t category, const char* name) { name_category(0, category, name); }
void category_unicode(std::uint32_t category, const wchar_t* name) { name_category(0, category, name); }
void thread_ascii(std::uint32_t thread, const char* name) { name_thread(thread, name); }
void thread_unicode(std::uint32_t thread, const wchar_t* name) { name_thread(thread, name); }

void mark_in(Domain domain, const EventAttributes* attributes) { mark(described(index_of(domain), attributes)); }
RangeId start_in(Domain domain, const EventAttributes* attributes) {
  return start(described(index_of(domain), attributes));
}
void end_in(Domain, RangeId id) { end(id); }
int push_in(Domain domain, const EventAttributes* attributes) { return push(described(index_of(domain), attributes)); }
int pop_in(Domain domain) { return pop(index_of(domain)); }
void category_ascii_in(Domain domain, std::uint32_t category, const char* name) {
  name_category(index_of(domain), category, name);
}
void category_unicode_in(Domain domain, std::uint32_t category, const wchar_t* name) {
  name_category(index_of(domain), category, name);
}
RegisteredString register_ascii(Domain domain, const char* text) { return register_string(domain, text); }
RegisteredString register_unicode(Domain domain, const wchar_t* text) { return register_string(domain, text); }
Domain create_ascii(const char* name) { return create_domain(text_of(name)); }
Domain create_unicode(const wchar_t* name) {
  Utf8Text text;
  if (name != nullptr) text.add(name);
  return create_domain(text.view());
}
void destroy(Domain) {}  // the name may come again

class Table {
 public:
  Table(const CallbacksTable& callbacks, std::uint32_t module) {
    if (callbacks.function_table(module, &places_, &size_) == 0) size_ = 0;
  }
  template <class F>
  void set(unsigned int number, F* function) {
    if (number < size_ && places_[number] != nullptr) *places_[number] = reinterpret_cast<Function>(function);
  }

 private:
  Function** places_ = nullptr;
  unsigned int size_ = 0;
};

void take_calls(const CallbacksTable& callbacks) {
  Table core(callbacks, kModuleCore);
  core.set(kMarkEx, mark_ex);
  core.set(kMarkA, mark_ascii);
  core.set(kMarkW, mark_unicode);
  core.set(kRangeStartEx, start_ex);
  core.set(kRangeStartA, start_ascii);
  core.set(kRangeStartW, start_unicode);
  core.set(kRangeEnd, end);
  core.set(kRangePushEx, push_ex);
  core.set(kRangePushA, push_ascii);
  core.set(kRangePushW, push_unicode);
  core.set(kRangePop, pop_default);
  core.set(kNameCategoryA, category_ascii);
  core.set(kNameCategoryW, category_unicode);
  core.set(kNameOsThreadA, thread_ascii);
  core.set(kNameOsThreadW, thread_unicode);
  Table domain(callbacks, kModuleDomains);
  domain.set(kDomainMarkEx, mark_in);
  domain.set(kDomainRangeStartEx, start_in);
  domain.set(kDomainRangeEnd, end_in);
  domain.set(kDomainRangePushEx, push_in);
  domain.set(kDomainRangePop, pop_in);
  domain.set(kDomainNameCategoryA, category_ascii_in);
  domain.set(kDomainNameCategoryW, category_unicode_in);
  domain.set(kDomainRegisterStringA, register_ascii);
  domain.set(kDomainRegisterStringW, register_unicode);
  domain.set(kDomainCreateA, create_ascii);
  domain.set(kDomainCreateW, create_unicode);
  domain.set(kDomainDestroy, destroy);
}

}  // namespace
}  // namespace hotlap::nvtx

// 0 has NVTX take all its calls out of the program again.
int InitializeInjectionNvtx2(hotlap::nvtx::GetExportTable get_export_table) {
  using namespace hotlap;
  using namespace hotlap::nvtx;
  const auto* callbacks = static_cast<const CallbacksTable*>(get_export_table(kCallbacks));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(CallbacksTable) || callbacks->function_table == nullptr) {
    return 0;
  }
  if (!sender.start("nvtx")) return 0;
  if (swap_word<std::uint32_t>(has_handlers, 0, 1)) {
    ::pthread_atfork(nullptr, nullptr, [] { sender.after_fork(); });
    std::atexit([] { sender.finish(); });
    sender.info("observer.nvtx", "on");
  }
  take_calls(*callbacks);
  return 1;
}
