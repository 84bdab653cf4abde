#pragma once
// What a mount's type tells about where its bytes come from. Thread-safe: nothing here has state.
#include <string_view>

namespace hotlap {

// "nfs4", "fuse.gcsfuse": another machine or a bucket. False for types that are not known.
bool is_network_mount(std::string_view type);

}  // namespace hotlap
