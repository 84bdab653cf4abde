// Would native observers work here? Their libraries are looked for where `hotlap run` looks, and loaded.
#include "record/observers.h"
#include "base/format.h"
#include "base/shared_library.h"
#include "cli/doctor/doctor.h"
#include "record/identity.h"

namespace hotlap {
namespace {

Check checked(const ObserverSpec& observer, const EnvironmentView& environment) {
  Check check{.area = "observers", .name = std::string(observer.name), .health = Health::kNote, .text = {}, .mend = {}};
  const Result<std::filesystem::path> library = find_observer(observer);
  if (!library.ok()) {
    check.text = library.error().message;
    return check;
  }
  if (const Result<SharedLibrary> loaded = SharedLibrary::open(library->native()); !loaded.ok()) {
    check.health = Health::kWarning;
    check.text = loaded.error().message;
    return check;
  }
  if (!environment.get(observer.variable).empty()) {
    check.health = Health::kWarning;
    check.text = format("{} is set already, to another tool, which goes first", observer.variable);
    check.mend = format("unset {}", observer.variable);
    return check;
  }
  check.health = Health::kGood;
  check.text = format("{} (hotlap run --observe {})", observer.sees, observer.name);
  return check;
}

}  // namespace

void check_observers(const char* const* environment, Checks& out) {
  for (const ObserverSpec& observer : all_observers()) out.push_back(checked(observer, EnvironmentView(environment)));
}

}  // namespace hotlap
