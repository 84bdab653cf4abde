// Hostile configuration: any text gives a Config or an error that names the file and a line.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > (std::size_t{1} << 20)) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = hotlap::parse_config(text, "fuzz.toml");
  if (config.ok() && config->price_per_hour && config->instance) std::abort();
  if (!config.ok() && !config.error().message.starts_with("fuzz.toml:")) std::abort();
  return 0;
}
