#include "rules/page_cache_words.h"

#include "base/text.h"
#include "rules/words.h"

namespace hotlap {

void add_page_cache(const FactTable& facts, const Where& where, Finding& finding) {
  const Fact* cache = fact_for(facts, "page_cache.summary", where);
  const auto state = cache == nullptr ? std::nullopt : cache->text("state");
  if (!state) {
    finding.limits.emplace_back("whether later epochs come from memory is not known before two have ended");
    return;
  }
  const std::string first = format_bytes(cache->number("first_read_bytes").value_or(0));
  const std::string later = format_bytes(cache->number("later_read_bytes").value_or(0));
  if (*state == "too large") {
    finding.why.push_back(
        format("each epoch reads its data again ({}, then {}): it does not fit the page cache", first, later));
  } else if (*state == "fits") {
    finding.why.push_back(
        format("the cache was cold: {} from storage in the first epoch, {} in later ones", first, later));
  } else if (*state == "partly") {
    finding.why.push_back(
        format("{} from storage in the first epoch, {} in later ones: memory holds a part", first, later));
  }
}

}  // namespace hotlap
