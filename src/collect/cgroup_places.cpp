#include "collect/cgroup_places.h"

#include <algorithm>

#include "base/text.h"
#include "collect/scan.h"

namespace hotlap {
namespace {

bool has_item(std::string_view list, std::string_view item) {
  const auto items = split(list, ',');
  return std::ranges::find(items, item) != items.end();
}

// The path of the process in the hierarchy of a v1 controller, or in v2 (empty name): the line "4:memory:/path" or
// "0::/path".
std::optional<std::string_view> path_in(std::string_view cgroup_text, std::string_view controller) {
  for (TextCursor line(cgroup_text); !line.at_end(); line.skip_line()) {
    std::uint64_t hierarchy = 0;
    if (!line.number(hierarchy) || !line.accept(":")) continue;
    const auto controllers = line.until(':');
    if (!controllers) continue;
    const bool is_match =
        controller.empty() ? hierarchy == 0 && controllers->empty() : has_item(*controllers, controller);
    if (!is_match) continue;
    const std::string_view rest = line.rest();
    return rest.substr(0, rest.find('\n'));
  }
  return std::nullopt;
}

// The part of `path` below what is mounted; nothing when it is not below it.
std::optional<std::string_view> below(std::string_view path, std::string_view root) {
  if (path.find("/../") != std::string_view::npos || path.ends_with("/..")) return std::nullopt;
  if (root == "/") return path == "/" ? std::string_view() : path;
  if (!path.starts_with(root)) return std::nullopt;
  const std::string_view rest = path.substr(root.size());
  return rest.empty() || rest.front() == '/' ? std::optional(rest) : std::nullopt;
}

CgroupPlace place_of(std::string_view cgroup_text, const std::vector<Mount>& mounts, std::string_view controller,
                     const std::function<bool(const std::string&)>& folder_exists) {
  const bool is_v2 = controller.empty();
  const auto mount = std::ranges::find_if(mounts, [&](const Mount& m) {
    return is_v2 ? m.type == "cgroup2" : m.type == "cgroup" && has_item(m.options, controller);
  });
  if (mount == mounts.end()) return {};
  const auto path = path_in(cgroup_text, controller);
  // A v1 controller that is mounted, but that the process has no line for, is not in use.
  if (!path && !cgroup_text.empty()) return {};
  CgroupPlace place{.is_v2 = is_v2, .folders = {}};
  std::string folder = mount->point;
  if (const auto rest = path ? below(*path, mount->root) : std::nullopt) folder += *rest;
  if (!folder_exists(folder)) folder = mount->point;
  while (folder.size() > mount->point.size()) {
    place.folders.push_back(folder);
    folder.resize(folder.rfind('/'));
  }
  place.folders.push_back(mount->point);
  return place;
}

}  // namespace

CgroupPlaces find_cgroups(std::string_view cgroup_text, const std::vector<Mount>& mounts,
                          const std::function<bool(const std::string&)>& folder_exists) {
  CgroupPlaces places;
  const auto find = [&](std::string_view controller) {
    return place_of(cgroup_text, mounts, controller, folder_exists);
  };
  places.unified = find("");
  // Where a controller is in use by v1, v2 has only its folders.
  const auto v1_or_v2 = [&](std::string_view controller) {
    CgroupPlace place = find(controller);
    return place.exists() ? place : places.unified;
  };
  places.cpu = v1_or_v2("cpu");
  places.cpuacct = v1_or_v2("cpuacct");
  places.cpuset = v1_or_v2("cpuset");
  places.memory = v1_or_v2("memory");
  places.io = v1_or_v2("blkio");
  return places;
}

std::optional<CpuSet> parse_cpu_list(std::string_view list) {
  CpuSet cpus;
  TextCursor cursor(list);
  cursor.skip_blanks();
  while (!cursor.at_line_end()) {
    std::uint64_t first = 0;
    if (!cursor.number(first)) return std::nullopt;
    std::uint64_t last = first;
    if (cursor.accept("-") && (!cursor.number(last) || last < first)) return std::nullopt;
    if (last >= kCpuIdsMax) return std::nullopt;
    for (std::uint64_t id = first; id <= last; ++id) cpus.set(id);
    if (!cursor.accept(",") && !cursor.at_line_end()) return std::nullopt;
  }
  return cpus;
}

}  // namespace hotlap
